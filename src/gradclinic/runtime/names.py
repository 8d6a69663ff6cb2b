"""What the user calls an object, read from the source line that made or used it.

The variables of the running frames would tell it too, but reading them makes Python build a
dictionary that keeps every variable of the frame alive and changes what `locals()` returned.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterable
from functools import lru_cache
from itertools import islice
from types import FrameType

_DEEPEST = 6


def assigned_name(frames: Iterable[FrameType]) -> str | None:
    """`self.opt` for `self.opt = make_optimizer(...)`, from the frames of a constructor's callers."""
    for frame in islice(frames, _DEEPEST):
        statement = _statement(frame)
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target = _own_target(statement.targets[0], statement.value, frame)
            return ast.unparse(target) if isinstance(target, ast.Name | ast.Attribute) else None
        if isinstance(statement, ast.AnnAssign):
            return ast.unparse(statement.target)
        if not isinstance(statement, ast.Return) and not _calls_constructor(statement):
            return None
    return None


def _own_target(target: ast.expr, value: ast.expr, frame: FrameType) -> ast.expr:
    """That of the part which runs, of several assigned at once: `one, two = Adam(...), Adam(...)`."""
    span = _span(frame)
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and span is not None:
        for one, part in zip(target.elts, value.elts, strict=False):
            if _holds(part, span):
                return one
    return target


def builder(frames: Iterable[FrameType]) -> FrameType | None:
    """The frame that constructs: past the user's own `__init__` that only hands on to torch's."""
    for frame in islice(frames, _DEEPEST):
        if not _calls_constructor(_statement(frame)):
            return frame
    return None


def receiver_name(frames: Iterable[FrameType], method: str) -> str | None:
    """`self.model` for a running `self.model.eval()`."""
    frame = next(iter(frames), None)
    if frame is None:
        return None
    named = {
        ast.unparse(node.func.value)
        for node in _calls_on_line(frame)
        if isinstance(node.func, ast.Attribute) and node.func.attr == method
    }
    return named.pop() if len(named) == 1 else None


def callee_name(frames: Iterable[FrameType]) -> str | None:
    """`self.net` for a running `self.net(x)`."""
    frame = next(iter(frames), None)
    if frame is None:
        return None
    span = _span(frame)
    for node in _calls_on_line(frame):
        if _span_of(node) == span:
            return ast.unparse(node.func) if isinstance(node.func, ast.Name | ast.Attribute) else None
    return None


def _calls_constructor(statement: ast.stmt | None) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Call)
        and isinstance(statement.value.func, ast.Attribute)
        and statement.value.func.attr == "__init__"
    )


def _statement(frame: FrameType) -> ast.stmt | None:
    """The innermost statement that runs."""
    around, span = _around(frame.f_code.co_filename, frame.f_lineno), _span(frame)
    running = [node for node in around if span is not None and _holds(node, span)]
    return _innermost(running or around)


def class_of(filename: str, name: str) -> ast.stmt | None:
    """The definition of a class."""
    statements = all_statements(filename)
    return next((n for n in statements if isinstance(n, ast.ClassDef) and n.name == name), None)


def statement_at(filename: str, line: int) -> ast.stmt | None:
    """The innermost statement on a line."""
    return _innermost(_around(filename, line))


def _around(filename: str, line: int) -> list[ast.stmt]:
    return [one for one in all_statements(filename) if one.lineno <= line <= (one.end_lineno or one.lineno)]


def _innermost(statements: list[ast.stmt]) -> ast.stmt | None:
    return min(
        statements, key=lambda node: ((node.end_lineno or 0) - node.lineno, -node.col_offset), default=None
    )


def loops_around(filename: str, line: int) -> list[ast.For]:
    """The loops a line is in, the outermost first."""
    return [node for node in _around(filename, line) if isinstance(node, ast.For)]


def _calls_on_line(frame: FrameType) -> list[ast.Call]:
    statement = _statement(frame)
    if statement is None:
        return []
    return [n for n in ast.walk(statement) if isinstance(n, ast.Call) and n.lineno == frame.f_lineno]


Span = tuple[tuple[int, int], tuple[int, int]]
"""Line and column of the beginning and the end, as in `ast`."""


def _span(frame: FrameType) -> Span | None:
    """Of the expression that runs."""
    instruction = frame.f_lasti // 2
    for line, end_line, column, end_column in islice(frame.f_code.co_positions(), instruction, None):
        if line is None or end_line is None or column is None or end_column is None:
            return None
        return (line, column), (end_line, end_column)
    return None


def _span_of(node: ast.stmt | ast.expr) -> Span:
    return (node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0)


def _holds(node: ast.stmt | ast.expr, span: Span) -> bool:
    begin, end = _span_of(node)
    return begin <= span[0] and span[1] <= end


@lru_cache(maxsize=64)
def all_statements(filename: str) -> tuple[ast.stmt, ...]:
    """All statements of a file, at any depth."""
    try:
        tree = ast.parse("".join(linecache.getlines(filename)))
    except (SyntaxError, ValueError):
        return ()
    return tuple(node for node in ast.walk(tree) if isinstance(node, ast.stmt))
