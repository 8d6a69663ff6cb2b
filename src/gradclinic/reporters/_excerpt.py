"""The source lines around a place."""

from __future__ import annotations

from gradclinic.facts import Location
from gradclinic.frozen import frozen
from gradclinic.source_text import lines_of

LINES_BEFORE = 2
LONGEST = 100


@frozen
class Excerpt:
    lines: tuple[tuple[int, str], ...]
    """Line numbers and code, with the indentation they share taken away."""
    marked: int


def excerpt(location: Location, before: int = LINES_BEFORE) -> Excerpt | None:
    """The line and a few before it; None when the file does not have it (any more)."""
    from textwrap import dedent  # slow to import, and a report of nothing found shows no source

    lines = lines_of(location.path, location.cell)
    if not 1 <= location.line <= len(lines):
        return None
    first = max(location.line - before, 1)
    code = dedent("\n".join(line.expandtabs(4) for line in lines[first - 1 : location.line])).split("\n")
    while len(code) > 1 and not code[0].strip():
        code, first = code[1:], first + 1
    shown = tuple((number, _short(line)) for number, line in enumerate(code, first))
    return Excerpt(shown, location.line)


def _short(line: str) -> str:
    line = line.rstrip()
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"
