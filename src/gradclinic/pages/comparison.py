"""Several runs in the same axes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import isfinite
from statistics import median
from typing import Any

from gradclinic.facts.training import Step
from gradclinic.pages.figure import STEP, Figure, axis, log_axis, numbers, shown, steps
from gradclinic.store.reader import StoredRun, StoredTraining

Points = list[tuple[int, float]]


def beside_each_other(runs: Mapping[str, StoredRun]) -> list[Figure]:
    """One curve for each optimizer of each run."""
    figures = []
    for id, title, unit, log, wide, points in (
        ("loss", "Loss", "loss", False, True, _of_steps(lambda step: step.loss)),
        ("norm", "Gradient norm", "gradient norm", True, False, _of_steps(_norm)),
        ("rate", "Learning rate", "learning rate", False, False, _of_steps(_first_rate)),
        ("ratio", "Update to weight, median", "update / weight", True, False, _ratios),
        ("scale", "Loss scale", "loss scale", True, False, _of_steps(lambda step: step.scale)),
    ):
        values = [y for run in runs.values() for training in run.trainings for _, y in points(training)]
        if values:
            layout = {"xaxis": STEP, "yaxis": log_axis(unit, values) if log else axis(unit)}
            figures.append(Figure(id, title, list(_curves(runs, points)), layout, "", 340, wide))
    return figures


def _curves(
    runs: Mapping[str, StoredRun], points: Callable[[StoredTraining], Points]
) -> Iterable[dict[str, Any]]:
    for number, (run_name, run) in enumerate(runs.items()):
        for training in run.trainings:
            found = points(training)
            if not found:
                continue
            name = shown(f"{run_name} {training.name}" if len(run.trainings) > 1 else run_name)
            yield {
                "type": "scatter",
                "mode": "lines",
                "name": name,
                "x": steps(x for x, _ in found),
                "y": numbers(y for _, y in found),
                "line": {"color": f"@series{number % 8 + 1}", "width": 1.8},
                "hovertemplate": f"{name}<br>update %{{x}}: %{{y:.4g}}<extra></extra>",
            }


def _of_steps(value: Callable[[Step], float | None]) -> Callable[[StoredTraining], Points]:
    def points(training: StoredTraining) -> Points:
        told = ((step.index, value(step)) for step in training.steps)
        return [(x, y) for x, y in told if y is not None and isfinite(y)]

    return points


def _norm(step: Step) -> float | None:
    return step.norm if step.measured else None


def _first_rate(step: Step) -> float | None:
    return step.rates[0] if step.rates else None


def _ratios(training: StoredTraining) -> Points:
    found = []
    for sample in training.samples:
        pairs = zip(sample.updates, sample.weights, strict=False)
        ratios = [update / weight for update, weight in pairs if update > 0 and weight > 0]
        if ratios:
            found.append((sample.index, median(ratios)))
    return found
