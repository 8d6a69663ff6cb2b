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
