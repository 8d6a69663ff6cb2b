"""The statements of a file with their lines: which block each stands in, and how it is written."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradclinic.facts import Location
from gradclinic.frozen import record
from gradclinic.source_text import SourceText

_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@record
class Statement:
    node: ast.stmt
    block: list[ast.stmt]
    """The statements it stands among, itself included."""
    parent: Statement | None = None

    @property
    def position(self) -> int:
        return self.block.index(self.node)

    @property
    def scope(self) -> ast.stmt | None:
        """The function or class it belongs to."""
        above = self.parent
        while above is not None and not isinstance(above.node, _SCOPES):
            above = above.parent
        return above.node if above else None

    def lifted_to(self, block: list[ast.stmt]) -> Statement | None:
        """This statement, or the one around it, that stands in `block`."""
        here: Statement | None = self
        while here is not None and here.block is not block:
            here = here.parent
        return here


class Statements:
    def __init__(self, source: SourceText) -> None:
        self.lines = [line.rstrip("\r\n") for line in source.lines]
        self._all = tuple(_within(ast.parse(source.text).body, None))

    def at(self, where: Location) -> Statement | None:
        """The innermost statement around a place."""
        place = (where.line, where.column)
        covering = [
            statement
            for statement in self._all
            if (statement.node.lineno, statement.node.col_offset) <= place <= _end(statement.node)
        ]
        return covering[-1] if covering else None

    def alone(self, node: ast.stmt) -> bool:
        """Whether its lines hold nothing else but a comment."""
        before = self._bytes(node.lineno)[: node.col_offset]
        after = self.behind(node).strip()
        return not before.strip() and (not after or after.startswith("#"))

    def behind(self, node: ast.stmt) -> str:
        """What follows it on its last line."""
        last, column = _end(node)
        return self._bytes(last)[column:].decode()

    def column(self, line: int, offset: int) -> int:
        """Characters, of the bytes that `ast` counts."""
        return len(self._bytes(line)[:offset].decode())

    def indent(self, node: ast.stmt) -> str:
        return self.lines[node.lineno - 1][: self.column(node.lineno, node.col_offset)]

    def first_line(self, node: ast.stmt) -> int:
        """Where it begins together with the comment right above it."""
        indent, line = self.indent(node), node.lineno
        while line > 1 and self.lines[line - 2].startswith(indent + "#"):
            line -= 1
        return line

    def segment(self, node: ast.expr) -> str:
        """How an expression of one line is written."""
        return self._bytes(node.lineno)[node.col_offset : node.end_col_offset].decode()

    def _bytes(self, line: int) -> bytes:
        return self.lines[line - 1].encode()


def _within(body: list[ast.stmt], parent: Statement | None) -> Iterator[Statement]:
    """Every statement before those inside it."""
    for node in body:
        here = Statement(node, body, parent)
        yield here
        yield from _inside(node, here)


def _inside(node: ast.AST, here: Statement) -> Iterator[Statement]:
    for name in _BLOCKS:
        for part in getattr(node, name, ()):
            if isinstance(part, ast.stmt):
                yield from _within(getattr(node, name), here)
                break
            yield from _inside(part, here)


def _end(node: ast.stmt) -> tuple[int, int]:
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return node.end_lineno, node.end_col_offset
