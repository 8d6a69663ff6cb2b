"""A line of a report with its styles, written by rich where someone sees the colours.

Importing rich takes longer than reading a file; a pipe, an editor and a hook need none of it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import Console


class Line:
    __slots__ = ("parts", "width")

    def __init__(self, text: str = "", style: str = "") -> None:
        self.parts = [(text, style)]
        self.width: int | None = None

    def append(self, text: str, style: str = "") -> Line:
        self.parts.append((text, style))
        return self

    def cut(self, width: int) -> None:
        """Let it end at the terminal's edge instead of wrapping."""
        self.width = width

    @property
    def plain(self) -> str:
        return "".join(text for text, _ in self.parts)


def shows_colours(out: TextIO) -> bool:
    """True for a terminal, or for whoever says that it is one."""
    return out.isatty() or bool(os.environ.get("FORCE_COLOR") or os.environ.get("TTY_COMPATIBLE"))


def width_of(out: TextIO) -> int | None:
    """The columns of a terminal; None where lines may be as long as they are."""
    if not shows_colours(out):
        return None
    console = _console(out)
    return console.width if console.is_terminal else None


def write_lines(lines: Iterable[Line], out: TextIO) -> None:
    if not shows_colours(out):
        out.writelines(f"{line.plain}\n" for line in lines)
        return
    from rich.text import Text

    console = _console(out)
    for line in lines:
        text = Text.assemble(*line.parts)
        if line.width is not None:
            text.truncate(line.width, overflow="ellipsis")
        console.print(text)


def _console(out: TextIO) -> Console:
    from rich.console import Console

    return Console(file=out, highlight=False, markup=False, emoji=False, soft_wrap=True)
