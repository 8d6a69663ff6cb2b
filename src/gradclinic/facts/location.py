"""A place in the user's source."""

from __future__ import annotations

from dataclasses import field

from gradclinic.frozen import sealed


@sealed
class Location:
    """Lines count from 1 and columns from 0, as in Python's own `ast`."""

    path: str
    line: int
    column: int = 0
    function: str = ""
    cell: int | None = None
    """The 1-based cell of a notebook; `line` then counts within that cell."""
    via: str = field(default="", repr=False)
    """The line of a library that made the call, where the user's own only led to it. One line of a user may
    train an actor and a critic; told apart by this, shown to nobody."""

    def __str__(self) -> str:
        cell = f":cell {self.cell}" if self.cell is not None else ""
        return f"{self.path}{cell}:{self.line}"

    def same_line(self, other: Location | None) -> bool:
        """True for two places on one line: a run knows the line, rarely the column."""
        return other is not None and (self.path, self.cell, self.line) == (other.path, other.cell, other.line)
