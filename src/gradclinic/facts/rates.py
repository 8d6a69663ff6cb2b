"""How a program reads its learning rate."""

from __future__ import annotations

from dataclasses import dataclass

from gradclinic.facts.location import Location


@dataclass(frozen=True, slots=True)
class RateReading:
    """A place that takes something for the current learning rate."""

    where: Location
    schedule: str
    """What the user calls the schedule that decides the rate."""
    read: str
    """What is taken for it: `get_lr()`, or the setting that training started with."""
    attribute: Location | None = None
    """Where the word `get_lr` begins, when it can be exchanged as text."""
