"""Averages of weights, as they are kept by hand."""

from __future__ import annotations

from gradclinic.facts.location import Location
from gradclinic.frozen import frozen


@frozen
class SelfAverage:
    """A line that mixes live weights into an average which lies in the same memory."""

    where: Location
    parameters: tuple[str, ...]
    times: int


@frozen
class LiveCopy:
    """Weights that are kept under another name, and are no copy: they change with every update."""

    name: str
    """What they are kept by."""
    of: str
    """What they are the weights of."""
    where: Location
    used: Location
    """Where they are wanted as they were."""
