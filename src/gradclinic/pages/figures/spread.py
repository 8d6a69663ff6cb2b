"""How the sizes of gradients are spread, over the run."""

from __future__ import annotations

from collections.abc import Iterator
from math import log10, nan

from gradclinic.facts.exponents import edges
from gradclinic.pages.figure import STEP, Figure, Missing, axis, numbers, steps
from gradclinic.store.reader import StoredRun, StoredTraining


def draw(run: StoredRun) -> Iterator[Figure | Missing]:
    found = [(number, one) for number, one in enumerate(run.trainings) if one.spreads]
    for number, training in found:
        yield _of_one(training, number, f" of {training.name}" if len(run.trainings) > 1 else "")
    if not found:
        yield Missing("Sizes of gradients", "no histogram was made; one comes every hundred updates")


def _of_one(training: StoredTraining, number: int, of: str) -> Figure:
    at = [step for step, _ in training.spreads]
    totals = [max(1.0, sum(counts)) for _, counts in training.spreads]
    shares = [
        counts[place] / total or nan
        for place in range(1, len(edges()) + 1)
        for total, (_, counts) in zip(totals, training.spreads, strict=True)
    ]
    zeros = training.spreads[-1][1][0] / totals[-1]
    heat = {
        "type": "heatmap",
        "x": steps(at),
        "y": numbers(edge * log10(2) for edge in edges()),
        "z": {**numbers(shares), "shape": [len(edges()), len(at)]},
        "colorscale": "@heat",
        "colorbar": {"title": {"text": "share", "side": "top"}, "thickness": 12, "outlinewidth": 0},
        "hovertemplate": "about 10<sup>%{y:.1f}</sup>, update %{x}: %{z:.1%}<extra></extra>",
    }
    return Figure(
        f"spread{number}",
        f"Sizes of gradients{of}",
        [heat],
        {"xaxis": STEP, "yaxis": axis("power of ten", ticksuffix="")},
        "The share of all gradients that have this size; exact zeros are not drawn "
        f"({zeros:.0%} of them at the end). Below 10⁻⁷ they vanish in half precision.",
        wide=True,
    )
