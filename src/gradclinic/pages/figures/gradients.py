"""Gradient flow: how large each tensor's gradient is, over the run and at one step."""

from __future__ import annotations

from collections.abc import Iterator
from math import log10, nan
from typing import Any

from gradclinic.pages.figure import STEP, Figure, Missing, axis, log_axis, numbers, shown, steps
from gradclinic.store.reader import StoredRun, StoredTraining

_MOST_ROWS = 240


def draw(run: StoredRun) -> Iterator[Figure | Missing]:
    found = False
    for number, training in enumerate(run.trainings):
        if training.gradients and training.tensors:
            found = True
            of = f" of {training.name}" if len(run.trainings) > 1 else ""
            yield from _of_one(training, number, of)
    if not found:
        yield Missing("Gradient flow", "no gradients were measured")


def _of_one(training: StoredTraining, number: int, of: str) -> Iterator[Figure]:
    rows = _rows(training)
    names = [shown(training.tensors[row].name) for row in rows]
    at = [step for step, _ in training.gradients]
    z = [_log(norms[row] if row < len(norms) else nan) for row in rows for _, norms in training.gradients]
    left_out = len(training.tensors) - len(rows)
    beside = f" {left_out} smaller tensors are left out." if left_out else ""
    height = max(300, min(760, 130 + 15 * len(rows)))
    heat: dict[str, Any] = {
        "type": "heatmap",
        "x": steps(at),
        "y": names,
        "z": {**numbers(z), "shape": [len(rows), len(at)]},
        "colorscale": "@heat",
        "colorbar": {"title": {"text": "norm", "side": "top"}, "thickness": 12, "outlinewidth": 0},
        "hovertemplate": "%{y}<br>update %{x}: 10<sup>%{z:.2f}</sup><extra></extra>",
    }
    yield Figure(
        f"flow{number}",
        f"Gradient flow{of}",
        [heat],
        {"xaxis": STEP, "yaxis": axis(autorange="reversed", type="category", automargin=True)},
        "Norm of each tensor's gradient, from the input of the model at the top to its output."
        f" Gaps: no gradient, or exactly zero.{beside}",
        height,
        wide=True,
        extra={"filters": "rows", "powers": True},
    )
    latest = [10 ** z[row * len(at) + len(at) - 1] for row in range(len(rows))]
    yield Figure(
        f"bars{number}",
        f"Gradient flow{of} at one update",
        [
            {
                "type": "bar",
                "orientation": "h",
                "y": names,
                "x": numbers(latest),
                "marker": {"color": "@series1"},
                "hovertemplate": "%{y}: %{x:.3g}<extra></extra>",
            }
        ],
        {
            "xaxis": log_axis("gradient norm", latest),
            "yaxis": axis(autorange="reversed", type="category", automargin=True),
            "bargap": 0.25,
        },
        "",
        height,
        wide=True,
        extra={"filters": "bars", "slider": f"flow{number}"},
    )


def _rows(training: StoredTraining) -> list[int]:
    """All tensors, or the largest of a very large model; those of one block together."""
    rows = range(len(training.tensors))
    largest = sorted(rows, key=lambda row: -training.tensors[row].size)[:_MOST_ROWS]
    blocks: dict[str, int] = {}
    for row in rows:
        blocks.setdefault(_block(training.tensors[row].name), row)
    # Groups of an optimizer tear the model apart: weights here, biases there.
    return sorted(largest, key=lambda row: (blocks[_block(training.tensors[row].name)], row))


def _block(name: str) -> str:
    return ".".join(name.split(".")[:2])


def _log(norm: float) -> float:
    return log10(norm) if 0 < norm < float("inf") else nan
