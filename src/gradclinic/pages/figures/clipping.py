"""The size of the whole gradient, and what clipping makes of it."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite
from statistics import quantiles
from typing import Any

from gradclinic.facts.training import Step
from gradclinic.pages.figure import STEP, Figure, Missing, axis, log_axis, numbers, steps
from gradclinic.store.reader import StoredRun

_FEWEST = 10


def draw(run: StoredRun) -> Iterator[Figure | Missing]:
    found = False
    for number, training in enumerate(run.trainings):
        taken = [
            step for step in training.steps if not step.skipped and isfinite(step.norm) and step.norm > 0
        ]
        if len(taken) >= 2:
            found = True
            of = f" of {training.name}" if len(run.trainings) > 1 else ""
            yield _over_time(taken, number, of)
            if len(taken) >= _FEWEST:
                yield _distribution(taken, number, of)
    if not found:
        yield Missing("Gradient norm", "no update with a gradient was seen")


def _over_time(taken: list[Step], number: int, of: str) -> Figure:
    data: list[dict[str, Any]] = [
        {
            "type": "scatter",
            "mode": "lines",
            "name": "before clipping" if taken[-1].limit else "norm",
            "x": steps(step.index for step in taken),
            "y": numbers(step.norm for step in taken),
            "line": {"color": "@series1", "width": 1.5},
            "hovertemplate": "update %{x}: %{y:.3g}<extra></extra>",
        }
    ]
    limited = [step for step in taken if step.limit]
    note = "Of all gradients together. Nothing was clipped."
    if limited:
        share = sum(step.clipped for step in limited) / len(limited)
        note = f"Of all gradients together. {share:.0%} of the updates were clipped."
        data.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": "max_norm",
                "x": steps(step.index for step in limited),
                "y": numbers(step.limit for step in limited),
                "line": {"color": "@warning", "width": 2, "dash": "dash"},
                "hovertemplate": "max_norm %{y:.3g}<extra></extra>",
            }
        )
    layout = {
        "xaxis": STEP,
        "yaxis": log_axis("gradient norm", (value for s in taken for value in (s.norm, s.limit))),
    }
    return Figure(f"norm{number}", f"Gradient norm{of}", data, layout, note)


def _distribution(taken: list[Step], number: int, of: str) -> Figure:
    norms = [step.norm for step in taken]
    advised = quantiles(norms, n=10, method="inclusive")[8]
    limit = taken[-1].limit
    middle = (min([*norms, limit or advised]) + max([*norms, limit or advised])) / 2
    marks = [_mark(advised, "@good", f"90 % lie below {advised:.3g}", 1.0, middle)]
    if limit:
        marks.append(_mark(limit, "@warning", f"max_norm {limit:.3g}", 1.08, middle))
    histogram = {
        "type": "histogram",
        "x": numbers(norms),
        "nbinsx": 40,
        "marker": {"color": "@series1"},
        "hovertemplate": "norm %{x}: %{y} updates<extra></extra>",
    }
    layout = {
        "xaxis": axis("gradient norm"),
        "yaxis": axis("updates"),
        "bargap": 0.04,
        "margin": {"l": 62, "r": 18, "t": 48, "b": 46},
        "shapes": [line for line, _ in marks],
        "annotations": [text for _, text in marks],
    }
    note = f"A max_norm of {advised:.2g} would act on the largest tenth only."
    return Figure(f"norms{number}", f"Distribution of norms{of}", [histogram], layout, note)


def _mark(
    value: float, colour: str, words: str, height: float, middle: float
) -> tuple[dict[str, Any], dict[str, Any]]:
    """A line with its words on the side where there is room."""
    line = {
        "type": "line",
        "x0": value,
        "x1": value,
        "yref": "paper",
        "y0": 0,
        "y1": 1,
        "line": {"color": colour, "width": 2, "dash": "dash"},
    }
    text = {
        "x": value,
        "xref": "x",
        "yref": "paper",
        "y": height,
        "yanchor": "bottom",
        "xanchor": "left" if value < middle else "right",
        "text": f" {words} ",
        "showarrow": False,
        "font": {"color": colour, "size": 12},
    }
    return line, text
