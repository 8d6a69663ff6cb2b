"""The error that ended a run, as far as training can explain it."""

from __future__ import annotations

from enum import StrEnum

from gradclinic.facts.location import Location
from gradclinic.frozen import frozen


class CrashKind(StrEnum):
    INPLACE = "inplace"
    """A tensor that backward needs was overwritten."""
    SECOND_BACKWARD = "second backward"
    """backward went through a graph whose values are gone already."""
    TARGET = "target"
    """A class index out of range, or a target of the wrong form."""
    LOAD = "load"
    """A state_dict that does not fit."""
    INFERENCE = "inference tensor"
    """A tensor made under inference_mode is needed for backward."""


@frozen
class Crash:
    kind: CrashKind
    message: str
    where: Location
    """The user's line that raised it."""
    wrote: tuple[Location, str] | None = None
    """The line that overwrote what was needed, and what it called."""
    needed: Location | None = None
    """The line whose result or input had to stay."""
    names: tuple[str, ...] = ()
    """Keys or numbers that the message is about."""
    spans_steps: bool = False
    """The graph was begun before the last step."""
