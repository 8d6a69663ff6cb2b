"""One update as it happened: its events, in order, in time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from gradclinic.pages.figure import Figure, Missing, axis, shown
from gradclinic.store.reader import StoredRun

_LEAST = 0.4
"""Of a hundredth of the whole, so that a bar can be seen."""


def draw(run: StoredRun) -> Iterator[Figure | Missing]:
    tape = run.documents.get("tape")
    events = [event for event in (tape or {}).get("events", []) if event["ms"] is not None]
    if not tape or len(events) < 2:
        yield Missing("One update", "the run has not ended, or no update was seen")
        return
    kinds = list(dict.fromkeys(event["kind"] for event in events))
    whole = events[-1]["ms"] or 1.0
    data = [_bars(kind, number, events, whole) for number, kind in enumerate(kinds)]
    layout = {
        "barmode": "overlay",
        "xaxis": axis("milliseconds"),
        "yaxis": axis(autorange="reversed", type="category", automargin=True),
        "showlegend": False,
        "bargap": 0.35,
    }
    yield Figure(
        "tape",
        f"Update {tape['step']}, from the previous step to this one",
        data,
        layout,
        "Each bar begins with its call and ends with the next one; the observation itself is in it.",
        height=max(260, 120 + 30 * len(kinds)),
        wide=True,
    )


def _bars(kind: str, number: int, events: list[dict[str, Any]], whole: float) -> dict[str, Any]:
    spans = [(one, following["ms"]) for one, following in pairwise([*events, {"ms": whole}])]
    chosen = [(one, end) for one, end in spans if one["kind"] == kind]
    return {
        "type": "bar",
        "orientation": "h",
        "name": shown(kind),
        "y": [shown(kind)] * len(chosen),
        "base": [one["ms"] for one, _ in chosen],
        "x": [round(max(end - one["ms"], whole * _LEAST / 100), 4) for one, end in chosen],
        "marker": {"color": f"@series{number % 8 + 1}"},
        "text": [shown(f"{one['actor']} {one['place']}".strip()) for one, _ in chosen],
        "textposition": "none",
        "hovertemplate": "%{y} %{text}<br>at %{base:.3g} ms, %{x:.3g} ms<extra></extra>",
    }
