"""How far each update moves the weights, as a share of their size."""

from __future__ import annotations

from collections.abc import Iterator
from math import nan
from statistics import median
from typing import Any

from gradclinic.pages.figure import STEP, Figure, Missing, log_axis, numbers, shown, steps
from gradclinic.store.reader import StoredRun, StoredTraining

_MOST_LINES = 80
_USUAL = 1e-3
_LOW, _HIGH = 1e-4, 1e-2


def draw(run: StoredRun) -> Iterator[Figure | Missing]:
    measured = [training for training in run.trainings if training.samples and training.tensors]
    if not measured:
        yield Missing("Update to weight", "weights were not measured before and after an update")
        return
    for number, training in enumerate(measured):
        of = f" of {training.name}" if len(measured) > 1 else ""
        yield Figure(
            f"ratios{number}",
            f"Update to weight{of}",
            list(_lines(training)),
            {
                "xaxis": STEP,
                "yaxis": log_axis("update / weight", (_LOW, _HIGH)),
                "showlegend": False,
                "shapes": [_band(), _usual()],
            },
            "Each line is a weight matrix, the bold one their median. Around 1e-3 (dashed) is usual;"
            " far below the band a layer hardly learns, far above it jumps.",
            extra={"filters": "lines"},
        )


def _lines(training: StoredTraining) -> Iterator[dict[str, Any]]:
    matrices = [i for i, tensor in enumerate(training.tensors) if tensor.is_matrix]
    rows = matrices or list(range(len(training.tensors)))
    at = steps(sample.index for sample in training.samples)
    series = {row: [_ratio(s.updates, s.weights, row) for s in training.samples] for row in rows}
    for row in rows[:: -(-len(rows) // _MOST_LINES)]:
        name = shown(training.tensors[row].name)
        yield {
            "type": "scatter",
            "mode": "lines",
            "name": name,
            "x": at,
            "y": numbers(series[row]),
            "line": {"width": 1, "color": "@series1"},
            "opacity": 0.4,
            "hovertemplate": f"{name}<br>update %{{x}}: %{{y:.2g}}<extra></extra>",
        }
    middle = [[s[i] for s in series.values() if s[i] > 0] for i in range(len(training.samples))]
    yield {
        "type": "scatter",
        "mode": "lines",
        "name": "median",
        "x": at,
        "y": numbers(median(known) if known else nan for known in middle),
        "line": {"width": 3, "color": "@series1"},
        "hovertemplate": "median<br>update %{x}: %{y:.2g}<extra></extra>",
    }


def _ratio(updates: Any, weights: Any, row: int) -> float:
    if row >= len(updates) or row >= len(weights) or weights[row] <= 0 or updates[row] <= 0:
        return nan
    return float(updates[row] / weights[row])


def _band() -> dict[str, Any]:
    return {
        "type": "rect",
        "xref": "paper",
        "x0": 0,
        "x1": 1,
        "y0": _LOW,
        "y1": _HIGH,
        "fillcolor": "@good",
        "opacity": 0.10,
        "line": {"width": 0},
        "layer": "below",
    }


def _usual() -> dict[str, Any]:
    return {
        "type": "line",
        "xref": "paper",
        "x0": 0,
        "x1": 1,
        "y0": _USUAL,
        "y1": _USUAL,
        "line": {"color": "@good", "width": 1.5, "dash": "dash"},
    }
