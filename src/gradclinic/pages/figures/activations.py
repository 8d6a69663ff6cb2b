"""Units that never fire, and values in the flat tails."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gradclinic.pages.figure import STEP, Figure, Missing, axis, numbers, shown, steps
from gradclinic.store.reader import Activity, StoredRun

_MOST = 24
_MOST_NAMED = 8
"""With more lines than these a legend hides the picture; the pointer names them."""


def draw(run: StoredRun) -> Iterator[Figure | Missing]:
    known = [one for training in run.trainings for one in training.activities if one.samples and one.hidden]
    relus = [one for one in known if one.kind == "relu"][:_MOST]
    curved = [one for one in known if one.kind != "relu"][:_MOST]
    if relus:
        data = [_line(one, number, [s.dead for s in one.samples]) for number, one in enumerate(relus)]
        layout = _layout("units at zero", len(data))
        yield Figure("dead", "Dead units", data, layout, "Zero for every sample of a batch.")
    else:
        yield Missing("Dead units", "no hidden ReLU was seen")
    if curved:
        data = [_line(one, number, [s.pinned for s in one.samples]) for number, one in enumerate(curved)]
        note = "Values in the flat tails of sigmoid and tanh, where hardly any gradient passes."
        yield Figure("saturated", "Saturated values", data, _layout("values in the tails", len(data)), note)
    else:
        yield Missing("Saturated values", "no hidden sigmoid or tanh was seen")


def _line(one: Activity, number: int, shares: list[float]) -> dict[str, Any]:
    name = shown(
        f"{one.kind} {one.ordinal + 1}, {one.place}" if one.place else f"{one.kind} {one.ordinal + 1}"
    )
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": name,
        "x": steps(sample.index for sample in one.samples),
        "y": numbers(shares),
        "line": {"color": f"@series{number % 8 + 1}", "width": 2},
        "marker": {"size": 4},
        "hovertemplate": f"{name}<br>update %{{x}}: %{{y:.0%}}<extra></extra>",
    }


def _layout(title: str, lines: int) -> dict[str, Any]:
    y = axis(title, tickformat=".0%", range=[-0.03, 1.03])
    return {"xaxis": STEP, "yaxis": y, "showlegend": lines <= _MOST_NAMED}
