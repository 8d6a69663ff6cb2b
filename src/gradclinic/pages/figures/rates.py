"""The learning rate of every parameter group."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gradclinic.pages.figure import STEP, Figure, Missing, axis, numbers, shown, steps
from gradclinic.store.reader import StoredRun

_MOST_GROUPS = 8


def draw(run: StoredRun) -> Iterator[Figure | Missing]:
    data: list[dict[str, Any]] = []
    for training in run.trainings:
        groups = max((len(step.rates) for step in training.steps), default=0)
        for group in range(min(groups, _MOST_GROUPS)):
            of = f"{training.name} " if len(run.trainings) > 1 else ""
            name = shown(f"{of}group {group}") if groups > 1 or of else "learning rate"
            data.append(
                {
                    "type": "scatter",
                    "mode": "lines",
                    "name": name,
                    "x": steps(step.index for step in training.steps),
                    "y": numbers(
                        step.rates[group] if group < len(step.rates) else None for step in training.steps
                    ),
                    "line": {"color": f"@series{len(data) % 8 + 1}", "width": 2},
                    "hovertemplate": f"{name}<br>update %{{x}}: %{{y:.3g}}<extra></extra>",
                }
            )
    if not data:
        yield Missing("Learning rate", "no update was seen")
        return
    layout = {"xaxis": STEP, "yaxis": axis("learning rate", rangemode="tozero", exponentformat="e")}
    yield Figure("rates", "Learning rate", data, layout)
