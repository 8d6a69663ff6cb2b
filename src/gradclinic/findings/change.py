"""Changes to source as a rule can name them: by the place of statements, for it never sees their text."""

from __future__ import annotations

from enum import StrEnum

from gradclinic.facts.location import Location
from gradclinic.frozen import frozen


class Side(StrEnum):
    BEFORE = "before"
    AFTER = "after"


@frozen
class Word:
    """An expression as it is written in a call: `scaler` or `optimizer` of `scaler.step(optimizer)`."""

    at: Location
    method: str
    argument: int | None = None
    """The position of the argument; None for what the method is called on."""


@frozen
class Move:
    """The statement at `what` belongs beside the one at `to`."""

    what: Location
    side: Side
    to: Location
    over: tuple[Location, ...] = ()
    """Statements it may pass on the way without a second thought."""
    into: bool = True
    """It goes to the very block of `to` and runs as often; else it stays in its own, as often as it did."""


@frozen
class Insert:
    """A new statement beside the one at `to`; each `{}` of `text` is one of the words."""

    text: str
    words: tuple[Word, ...]
    side: Side
    to: Location


@frozen
class Rewrite:
    """The bare call at `what` becomes `text`; each `{}` of it is one of the words."""

    what: Location
    text: str
    words: tuple[Word, ...]


@frozen
class Remove:
    """The statement at `what` goes: it repeats the one at `repeats`."""

    what: Location
    repeats: Location


@frozen
class Keyword:
    """The call of `method` at `what` passes `name=text`, or, without a text, passes it no longer."""

    what: Location
    method: str
    name: str
    text: str | None


@frozen
class Suffix:
    """What the statement at `what` adds to a list or a sum gets `text` behind it."""

    what: Location
    text: str


Change = Move | Insert | Rewrite | Remove | Keyword | Suffix
