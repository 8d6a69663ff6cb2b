"""What IPython understands and Python does not, replaced line by line so that no line moves."""

from __future__ import annotations

import ast
import re

_PYTHON_CELLS = frozenset({"time", "timeit", "capture", "prun", "memit", "mprun", "debug", "checkup"})
"""Cell magics that run the rest of the cell as Python."""
_CELL_MAGIC = r"\s*%%(\w*)"
_LINE_MAGIC = r"(\s*)(?:%{1,2}[A-Za-z_]|!(?!=)|\?)"
_ASSIGNED_MAGIC = r"(\s*[\w.,\s\[\]'\"]+=\s*)(?:!|%[A-Za-z_])"
_HELP = r"(\s*)[\w.*\[\]]+\?{1,2}\s*$"


def as_python(text: str) -> str:
    """The cell with `pass` for what is no Python; a cell for another interpreter becomes empty lines."""
    lines = text.split("\n")
    first = next((number for number, line in enumerate(lines) if line.strip()), 0)
    cell_magic = re.match(_CELL_MAGIC, lines[first])
    if cell_magic and cell_magic[1] not in _PYTHON_CELLS:
        return "\n" * (len(lines) - 1)
    if not cell_magic and _parses(text):
        return text
    plain: list[str] = []
    continued = False
    for line in lines:
        replaced = "" if continued else _neutral(line)
        magic = continued or replaced != line
        continued = magic and line.rstrip().endswith("\\")
        plain.append(replaced)
    return "\n".join(plain)


def _neutral(line: str) -> str:
    found = re.match(_LINE_MAGIC, line) or re.match(_HELP, line)
    if found:
        return f"{found[1]}pass"
    assigned = re.match(_ASSIGNED_MAGIC, line)
    return f"{assigned[1]}None" if assigned else line


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
