"""The loss, with a mark where something happened."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from math import isfinite
from typing import Any

from gradclinic.facts.training import Step
from gradclinic.pages.figure import STEP, Figure, Missing, axis, log_axis, numbers, shown, steps
from gradclinic.store.reader import Event, StoredRun, StoredTraining

_SMOOTH_FROM = 60
_WIDE_RANGE = 30
_SYMBOLS = {"error": "x", "warning": "triangle-up", "info": "circle"}
_COLOURS = {"error": "@error", "warning": "@warning", "info": "@muted"}


def draw(run: StoredRun) -> Iterator[Figure | Missing]:
    trainings = [training for training in run.trainings if _known(training)]
    if not trainings:
        yield Missing("Loss", "no loss was sent backward by itself")
        return
    data = [trace for i, training in enumerate(trainings) for trace in _curves(training, i, len(trainings))]
    data += list(_marks(run.events, _known(trainings[0])))
    values = [step.loss for training in trainings for step in _known(training) if step.loss is not None]
    yield Figure(
        "loss",
        "Loss",
        data,
        {"xaxis": STEP, "yaxis": log_axis("loss", values) if _spans_decades(values) else axis("loss")},
        wide=True,
        height=380,
    )


def _known(training: StoredTraining) -> list[Step]:
    return [step for step in training.steps if step.loss is not None and isfinite(step.loss)]


def _curves(training: StoredTraining, number: int, among: int) -> Iterator[dict[str, Any]]:
    known = _known(training)
    x, y = [step.index for step in known], [step.loss or 0.0 for step in known]
    name = shown(training.name) if among > 1 else "loss"
    smooth = len(known) >= _SMOOTH_FROM
    yield {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": steps(x),
        "y": numbers(y),
        "line": {"color": f"@series{number + 1}", "width": 1 if smooth else 2},
        "opacity": 0.35 if smooth else 1.0,
        "hovertemplate": "update %{x}: %{y:.4g}<extra></extra>",
    }
    if smooth:
        yield {
            "type": "scatter",
            "mode": "lines",
            "name": f"{name}, smoothed",
            "x": steps(x),
            "y": numbers(_smoothed(y)),
            "line": {"color": f"@series{number + 1}", "width": 2.5},
            "hoverinfo": "skip",
        }


def _smoothed(values: list[float]) -> list[float]:
    """A running mean over about a fiftieth of the run, fair to its beginning."""
    keep = 1 - 1 / max(5.0, len(values) / 50)
    smooth, total, weight = [], 0.0, 0.0
    for value in values:
        total, weight = keep * total + (1 - keep) * value, keep * weight + (1 - keep)
        smooth.append(total / weight)
    return smooth


def _marks(events: tuple[Event, ...], known: list[Step]) -> Iterator[dict[str, Any]]:
    indices = [step.index for step in known]
    for severity, symbol in _SYMBOLS.items():
        chosen = [event for event in events if event.severity == severity]
        if chosen:
            at = [known[min(bisect_left(indices, event.step), len(known) - 1)].loss for event in chosen]
            yield {
                "type": "scatter",
                "mode": "markers",
                "name": f"{severity}s" if severity != "info" else "notes",
                "x": steps(event.step for event in chosen),
                "y": numbers(at),
                "text": [shown_whole(event.text) for event in chosen],
                "marker": {"symbol": symbol, "size": 10, "color": _COLOURS[severity]},
                "hovertemplate": "update %{x}<br>%{text}<extra></extra>",
            }


def shown_whole(text: str) -> str:
    """A sentence, in lines that fit into a hover label."""
    words, lines = text.split(), [""]
    for word in words:
        if len(lines[-1]) + len(word) > 60:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return "<br>".join(shown(line) for line in lines[:6])


def _spans_decades(values: list[float]) -> bool:
    return bool(values) and min(values) > 0 and max(values) > _WIDE_RANGE * min(values)
