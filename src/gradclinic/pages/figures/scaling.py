"""The loss scale of mixed precision, and the updates it cost."""

from __future__ import annotations

from collections.abc import Iterator
from math import log10

from gradclinic.pages.figure import STEP, Figure, Missing, log_axis, numbers, steps
from gradclinic.store.reader import StoredRun

_WIDE_RANGE = 100


def draw(run: StoredRun) -> Iterator[Figure | Missing]:
    found = False
    for number, training in enumerate(run.trainings):
        scaled = [step for step in training.steps if step.scale]
        if not scaled:
            continue
        found = True
        skipped = [step for step in scaled if step.skipped]
        of = f" of {training.name}" if len(run.trainings) > 1 else ""
        data = [
            {
                "type": "scatter",
                "mode": "lines",
                "name": "loss scale",
                "x": steps(step.index for step in scaled),
                "y": numbers(step.scale for step in scaled),
                "line": {"color": "@series1", "width": 2, "shape": "hv"},
                "hovertemplate": "update %{x}: %{y:.0f}<extra></extra>",
            },
            {
                "type": "scatter",
                "mode": "markers",
                "name": "skipped update",
                "x": steps(step.index for step in skipped),
                "y": numbers(step.scale for step in skipped),
                "marker": {"symbol": "x", "size": 9, "color": "@warning"},
                "hovertemplate": "update %{x} was skipped<extra></extra>",
            },
        ]
        note = f"{len(skipped)} of {len(scaled)} recorded updates were skipped."
        scales = [step.scale or 1.0 for step in scaled]
        # Scales are doubled and halved; over a wide range that is too many ticks.
        ticks = 1 if max(scales) > _WIDE_RANGE * min(scales) else log10(2)
        layout = {"xaxis": STEP, "yaxis": log_axis("loss scale", scales) | {"dtick": ticks}}
        yield Figure(f"scale{number}", f"Loss scale{of}", data, layout, note)
    if not found:
        yield Missing("Loss scale", "the loss was not scaled")
