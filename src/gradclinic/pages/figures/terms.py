"""Which modules each term of the objective trains, and how strongly."""

from __future__ import annotations

from collections.abc import Iterator
from math import log10, nan
from typing import Any

from gradclinic.pages.figure import Figure, Missing, axis, numbers, shown
from gradclinic.store.reader import StoredRun

_MOST = 60


def draw(run: StoredRun) -> Iterator[Figure | Missing]:
    measured = run.documents.get("diagnosis", {}).get("measured", {})
    objectives = measured.get("objectives", [])
    for number, objective in enumerate(objectives):
        yield _matrix(objective, number)
    if not objectives:
        yield Missing("Loss terms and what they train", "the objective is no sum, or it was not taken apart")


def _matrix(objective: dict[str, Any], number: int) -> Figure:
    terms = objective["terms"]
    modules = list(dict.fromkeys(module for term in terms for module in term["modules"]))[:_MOST]
    z = [_log(term["modules"].get(module)) for module in modules for term in terms]
    heat: dict[str, Any] = {
        "type": "heatmap",
        "x": [shown(term["name"]) for term in terms],
        "y": [shown(module) for module in modules],
        "z": {**numbers(z), "shape": [len(modules), len(terms)]},
        "colorscale": "@heat",
        "colorbar": {"title": {"text": "norm", "side": "top"}, "thickness": 12, "outlinewidth": 0},
        "hovertemplate": "%{x} on %{y}: 10<sup>%{z:.2f}</sup><extra></extra>",
    }
    apart = [
        f" {shown(pair['first'])} and {shown(pair['second'])} pull apart (cosine {pair['cosine']:.2f})."
        for pair in objective["cosines"]
        if pair["cosine"] < -0.1
    ]
    return Figure(
        f"terms{number}",
        f"Loss terms and what they train, at {shown(objective['backward'])}",
        [heat],
        {
            "xaxis": axis(type="category"),
            "yaxis": axis(autorange="reversed", type="category", automargin=True),
        },
        f"Norm of each term's gradient in each module. Gaps: it does not reach it.{''.join(apart)}",
        max(300, min(760, 130 + 18 * len(modules))),
        wide=True,
        extra={"filters": "rows", "powers": True},
    )


def _log(norm: float | str | None) -> float:
    return log10(norm) if isinstance(norm, float | int) and norm > 0 else nan
