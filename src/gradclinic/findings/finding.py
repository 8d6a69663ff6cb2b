"""One thing that is wrong, with its place, its evidence and its remedy."""

from __future__ import annotations

from enum import StrEnum

from gradclinic.facts.location import Location
from gradclinic.facts.source import Source
from gradclinic.findings.change import Change
from gradclinic.frozen import sealed


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    @property
    def rank(self) -> int:
        """0 is the worst."""
        return list(Severity).index(self)

    def at_least(self, other: Severity) -> bool:
        return self.rank <= other.rank


class Kind(StrEnum):
    CAUSE = "cause"
    SYMPTOM = "symptom"


@sealed
class Evidence:
    label: str
    value: str


@sealed
class Edit:
    """Replace the text from (line, column) to (end_line, end_column); columns count characters."""

    path: str
    line: int
    column: int
    end_line: int
    end_column: int
    text: str
    cell: int | None = None
    """Of a notebook; lines then count within that cell."""


@sealed
class Fix:
    text: str
    edits: tuple[Edit, ...] = ()
    safe: bool = False
    """A safe fix cannot change what a correct program does."""
    changes: tuple[Change, ...] = ()
    """What a rule wants changed. Whoever has the source makes edits of it, or finds that it does not fit."""


@sealed
class Finding:
    code: str
    name: str
    severity: Severity
    kind: Kind
    message: str
    location: Location | None = None
    evidence: tuple[Evidence, ...] = ()
    fix: Fix | None = None
    confidence: float = 0.9
    sources: tuple[Source, ...] = ()
    explains: tuple[str, ...] = ()
    """Codes of symptoms in the same diagnosis that this cause accounts for."""
    explained_by: str | None = None
    places: tuple[Location, ...] = ()
    """Other places it speaks of: code that does not pass them all is no evidence against it."""
    subject: str = ""
    """What it is about when one place can be wrong for several things: an optimizer, a tensor."""
    ranks: tuple[int, ...] = ()
    """The processes of a distributed run it was seen in."""
