"""A panel in the last lines of the terminal, below all that the script prints.

The lines above it are made the terminal's scrolling region, so the script's output goes on as ever, from
whatever it comes: print, a progress bar, C code, a child. Nothing of the script's streams is replaced.
"""

from __future__ import annotations

import os
from io import StringIO
from typing import TextIO

from rich.console import Console, Group
from rich.panel import Panel as Box
from rich.text import Text

from gradclinic.terminal.pulse import Pulse, numbers

SECONDS = 0.25
_HEIGHT = 4
_BORDERS = 4
_SMALLEST = (60, 12)
_BLOCKS = "▁▂▃▄▅▆▇█"
_SAVE, _RESTORE, _CLEAR_BELOW = "\x1b7", "\x1b8", "\x1b[J"


class Panel:
    def __init__(self, out: TextIO, title: str) -> None:
        self._out = out
        self._title = title
        self._size: tuple[int, int] | None = None
        """Columns and rows of the terminal the panel stands in; None when it does not."""

    def show(self, pulse: Pulse) -> None:
        size = os.get_terminal_size(self._out.fileno())
        if size != self._size:
            self.close()
            if size.columns < _SMALLEST[0] or size.lines < _SMALLEST[1]:
                return
            self._make_room(size.lines)
            self._size = size
        first = size.lines - _HEIGHT + 1
        rows = _rendered(pulse, self._title, size.columns)
        drawn = "".join(f"\x1b[{first + i};1H\x1b[2K{row}" for i, row in enumerate(rows))
        self._write(f"{_SAVE}{drawn}{_RESTORE}")

    def close(self) -> None:
        """Give the lines back, empty, with the cursor where the script left it."""
        if self._size is not None:
            first = self._size[1] - _HEIGHT + 1
            self._write(f"{_SAVE}\x1b[r\x1b[{first};1H{_CLEAR_BELOW}{_RESTORE}")
            self._size = None

    def _make_room(self, lines: int) -> None:
        """Scroll up what is there, and keep the cursor out of the last lines from now on."""
        up = f"\x1b[{_HEIGHT}A"
        self._write("\n" * _HEIGHT + f"{up}{_SAVE}\x1b[1;{lines - _HEIGHT}r{_RESTORE}")

    def _write(self, text: str) -> None:
        # One write, so that nothing of the script's comes in between.
        self._out.write(text)
        self._out.flush()


def suits(out: TextIO) -> bool:
    """A terminal that a person looks at, and that understands what the panel is drawn with."""
    dumb = os.environ.get("TERM", "dumb") in ("", "dumb", "unknown")
    return out.isatty() and not dumb and not os.environ.get("NO_COLOR")


def _rendered(pulse: Pulse, title: str, width: int) -> list[str]:
    first = Text(no_wrap=True, overflow="ellipsis")
    for name, value in numbers(pulse):
        first.append(f"{name} ", "dim").append(f"{value}  ", "bold")
    first.append(sparkline(pulse.losses, width - _BORDERS - first.cell_len), "cyan")
    second = Text(
        pulse.alert or "no alerts", "yellow" if pulse.alert else "dim", no_wrap=True, overflow="ellipsis"
    )
    drawing = Console(file=StringIO(), force_terminal=True, width=width, legacy_windows=False)
    box = Box(Group(first, second), title=Text(title), title_align="left", border_style="dim", height=_HEIGHT)
    with drawing.capture() as captured:
        drawing.print(box)
    return captured.get().splitlines()[:_HEIGHT]


def sparkline(values: list[float], width: int) -> str:
    """The last of them as blocks, the lowest and the highest of these at the ends of the scale."""
    shown = values[-width:] if width > 0 else []
    low, high = min(shown, default=0.0), max(shown, default=0.0)
    span = (high - low) or 1.0
    return "".join(_BLOCKS[int((value - low) / span * (len(_BLOCKS) - 1))] for value in shown)
