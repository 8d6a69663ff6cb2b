"""A notebook read as one program, its cells in order, and every place told by cell and line."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from itertools import product
from typing import Any, TypeVar

from gradclinic.cells import Cell, NotANotebook, code_cells, document_of, source_of
from gradclinic.facts import Location
from gradclinic.findings import Edit
from gradclinic.frozen import sealed
from gradclinic.linting.magics import as_python
from gradclinic.source_text import SourceText, UnreadableSource

T = TypeVar("T")


@sealed
class Program:
    """The cells as one source. An empty line ends each, so that a line can be added to any."""

    name: str
    code: SourceText
    cells: tuple[int, ...]
    """The cell of each line."""
    begins: Mapping[int, int]
    """The line before the first of each cell."""

    def in_cells(self, thing: T) -> T:
        """The same with places told by cell and line."""
        return relocated(thing, self._to_cell)

    def in_lines(self, thing: T) -> T:
        """The same with places told by the line of the whole program."""
        return relocated(thing, self._to_line)

    def _to_cell(self, where: Location | Edit) -> Location | Edit:
        if isinstance(where, Location) and where.path != self.name:
            return where  # In a module that the notebook imports
        cell = self.cells[where.line - 1]
        begin = self.begins[cell]
        if isinstance(where, Edit):
            return replace(where, cell=cell, line=where.line - begin, end_line=where.end_line - begin)
        return replace(where, cell=cell, line=where.line - begin)

    def _to_line(self, where: Location | Edit) -> Location | Edit:
        if where.cell is None:
            return where
        begin = self.begins[where.cell]
        if isinstance(where, Edit):
            return replace(where, cell=None, line=where.line + begin, end_line=where.end_line + begin)
        return replace(where, cell=None, line=where.line + begin)


def program(text: str, name: str) -> Program:
    """The program in a notebook's file. A cell that is no Python is an error of its cell and line."""
    try:
        cells = code_cells(document_of(text))
    except NotANotebook as error:
        raise UnreadableSource(str(error)) from error
    lines: list[str] = []
    owners: list[int] = []
    begins: dict[int, int] = {}
    for cell in cells:
        begins[cell.number] = len(lines)
        own = _python(cell, name).split("\n")
        lines += [*own, ""]
        owners += [cell.number] * (len(own) + 1)
    return Program(name, SourceText("\n".join(lines)), tuple(owners), begins)


def _python(cell: Cell, name: str) -> str:
    text = as_python(cell.text)
    try:
        ast.parse(text)
    except SyntaxError as error:
        error.filename = f"{name}:cell {cell.number}"
        raise
    return text


def relocated(thing: T, move: Callable[[Any], Any]) -> T:
    """A copy of facts or findings with every place in them moved."""
    copied: Any = thing
    if isinstance(thing, Location | Edit):
        copied = move(thing)
    elif isinstance(thing, tuple | list | frozenset):
        copied = type(thing)(relocated(part, move) for part in thing)
    elif isinstance(thing, Mapping):
        copied = {key: relocated(value, move) for key, value in thing.items()}
    elif is_dataclass(thing) and not isinstance(thing, type):
        parts = {field.name: getattr(thing, field.name) for field in fields(thing) if field.init}
        copied = replace(thing, **{name: relocated(value, move) for name, value in parts.items()})
    moved: T = copied
    return moved


def with_cell(source: SourceText, number: int, text: str) -> SourceText | None:
    """The notebook with another text in one cell; None if it is not laid out the way Jupyter does."""
    document = document_of(source.text)
    written = _writer(document, source.text)
    if written is None:
        return None
    cell = document["cells"][number - 1]
    if not source_of(cell).endswith("\n"):
        text = text.removesuffix("\n")
    cell["source"] = text.splitlines(keepends=True) if isinstance(cell["source"], list) else text
    return replace(source, text=written(document))


def cell_text(source: SourceText, number: int) -> str:
    return source_of(document_of(source.text)["cells"][number - 1])


def _writer(document: Mapping[str, Any], text: str) -> Callable[[Mapping[str, Any]], str] | None:
    """How this notebook was written, if writing it so gives the same text again."""
    for indent, ascii_only, end in product((1, 2, 4, None), (False, True), ("\n", "")):

        def write(
            document: Mapping[str, Any],
            indent: int | None = indent,
            ascii_only: bool = ascii_only,
            end: str = end,
        ) -> str:
            return json.dumps(document, indent=indent, ensure_ascii=ascii_only) + end

        if write(document) == text:
            return write
    return None


def one_cell(edits: Iterable[Edit]) -> int | None:
    """The cell that all of these edits are in."""
    cells = {edit.cell for edit in edits}
    return cells.pop() if len(cells) == 1 else None
