"""What a program does with gradients that a scaler had to do with."""

from __future__ import annotations

from gradclinic.facts.location import Location
from gradclinic.frozen import frozen


@frozen
class UncheckedStep:
    """`scaler.unscale_(optimizer); optimizer.step(); scaler.update()`: nobody asks what the scaler found."""

    what = "step on unscaled gradients"

    scaler: str
    optimizer: str
    """Both as they are written."""
    unscaled: Location
    where: Location
    """The step."""
