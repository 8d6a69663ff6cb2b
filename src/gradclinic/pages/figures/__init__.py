"""All figures of a run, each from one module with a `draw(run)`."""

from __future__ import annotations

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
)
from gradclinic.store.reader import StoredRun

_ALL = (loss, gradients, spread, ratios, clipping, rates, scaling, activations, memory, tape)


def draw(run: StoredRun) -> tuple[list[Figure], list[Missing]]:
    """What can be drawn of this run, and what cannot."""
    drawn = [one for module in _ALL for one in module.draw(run)]
    return (
        [one for one in drawn if isinstance(one, Figure)],
        [one for one in drawn if isinstance(one, Missing)],
    )
