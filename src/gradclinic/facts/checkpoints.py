"""What was saved and loaded."""

from __future__ import annotations

from gradclinic.facts.location import Location
from gradclinic.frozen import frozen


@frozen
class Load:
    """A state_dict that was loaded into a model."""

    model: str
    where: Location
    wanted: int
    """Entries the model has."""
    missing: tuple[str, ...] = ()
    unexpected: tuple[str, ...] = ()
    prefix: str = ""
    """Put before or taken from the keys given, it makes most of them fit."""
    aliases: int = 0
    """Entries given that are the model's own memory."""
    updates_before: int = 0


@frozen
class Saves:
    """All that a run saved, taken together."""

    where: Location
    """The call that saved a checkpoint to go on from."""
    holds: frozenset[str]
    """Of model, optimizer, schedule, scaler, progress, rng."""
    exists: frozenset[str]
    """What of these the run has."""
    resumed: bool = True
    """False for a source that loads no checkpoint to go on from: it may be meant for use only."""
