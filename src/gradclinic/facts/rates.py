"""How a program reads its learning rate."""

from __future__ import annotations

from gradclinic.facts.location import Location
from gradclinic.frozen import frozen


@frozen
class RateReading:
    """A place that takes something for the current learning rate."""

    where: Location
    schedule: str
    """What the user calls the schedule that decides the rate."""
    read: str
    """What is taken for it: `get_lr()`, or the setting that training started with."""
    attribute: Location | None = None
    """Where the word `get_lr` begins, when it can be exchanged as text."""
    sure: bool = True
    """False for a schedule of which it is not known whether it computes each rate from the first."""


@frozen
class IdleSchedule:
    """A schedule that is left to a trainer which does not advance it."""

    kind: str
    """Its class."""
    where: Location
    """Where it is built."""
