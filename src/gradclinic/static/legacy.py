"""Sources as Python reads them, those of the first years of torch, with `print x` and `async=True`, and
notebooks that were saved as they are, with `!pip install` and `%cd`."""

from __future__ import annotations

import ast
import re
import symtable

from gradclinic.static.compiled import is_compiled

_PRINT = r"(?m)^([ \t]*)print[ \t]+[^=(\s].*$"
_ASYNC = r"\basync(?=\s*=[^=])"
"""`x.cuda(async=True)`, an argument like any other until Python 3.7 made a keyword of its name."""
_COMMAND = r"(?m)^([ \t]*)(?:![ \t]*[\w.]|%%?[a-z]).*$"


def parse(text: str, path: str) -> ast.Module:
    """The syntax tree, with such words passed over. SyntaxError is that of `ast.parse`."""
    try:
        return ast.parse(text, path)
    except SyntaxError as error:
        readable = _today(text, str(error.msg))
        if readable == text:
            raise
        try:
            return ast.parse(readable, path)
        except SyntaxError:
            raise error from None


def _today(text: str, complaint: str) -> str:
    """What stands elsewhere on a line keeps its place."""
    readable = re.sub(_COMMAND, r"\1pass", re.sub(_ASYNC, "_sync", text))
    if "Missing parentheses in call to 'print'" not in complaint and readable == text:
        return text
    return re.sub(_PRINT, r"\1pass", readable)


def check(text: str, path: str) -> None:
    """Raise what `parse` raises. For a tree that nobody reads: making it takes a third of the time."""
    if is_compiled(text, path):
        return
    try:
        symtable.symtable(text, path, "exec")
    except Exception:
        parse(text, path)
