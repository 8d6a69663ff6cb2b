"""All figures of a run, each from one module with a `draw(run)`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gradclinic.pages.figure import Figure, Missing
from gradclinic.pages.figures import (
    activations,
    clipping,
    gradients,
    loss,
    memory,
    rates,
    ratios,
    scaling,
    spread,
    tape,
    terms,
)
from gradclinic.store.reader import StoredRun

_ALL = (loss, gradients, spread, ratios, clipping, rates, scaling, activations, terms, memory, tape)


def draw(run: StoredRun) -> tuple[list[Figure], list[Missing]]:
    """What can be drawn of this run, and what cannot."""
    drawn = [one for module in _ALL for one in module.draw(run)]
    figures = [one for one in drawn if isinstance(one, Figure)]
    missing = [one for one in drawn if isinstance(one, Missing)]
    return list(_without_holes(figures)), missing


def _without_holes(figures: list[Figure]) -> Iterator[Figure]:
    """Two narrow ones stand beside each other; one that is left over takes the whole width."""
    room = False
    for figure, following in zip(figures, [*figures[1:], None], strict=True):
        if figure.wide or room:
            room = False
            yield figure
        else:
            room = following is not None and not following.wide
            yield figure if room else replace(figure, wide=True)
