"""Updates that are written out instead of being left to an optimizer."""

from __future__ import annotations

from gradclinic.facts.location import Location
from gradclinic.frozen import frozen


@frozen
class DescentByHand:
    """`w -= lr * w.grad` in a loop that goes backward, and nothing in it clears the gradient."""

    what = "update by hand"

    names: tuple[str, ...]
    """What is updated, as it is written."""
    backward: Location
    where: Location
    """The first of the updates."""
