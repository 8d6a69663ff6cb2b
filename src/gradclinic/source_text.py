"""Source files as Python itself would read them: encoding cookie, BOM, any newline."""

from __future__ import annotations

import io
import os
import tokenize
from functools import lru_cache

from gradclinic.frozen import frozen


class UnreadableSource(Exception):
    """The message says in a few words why this file is no readable source."""


@frozen
class SourceText:
    text: str
    """Decoded, with its newlines untouched, so that it can be written back as it was."""
    encoding: str = "utf-8"

    @property
    def lines(self) -> list[str]:
        """Lines as Python counts them, each with its ending; `str.splitlines` would split at form feeds."""
        return list(io.StringIO(self.text, newline=""))


def read_source(path: str) -> SourceText:
    try:
        with open(path, "rb") as file:
            return decode(file.read())
    except OSError as error:
        raise UnreadableSource(error.strerror or str(error)) from error


def decode(data: bytes) -> SourceText:
    try:
        encoding = _encoding(data)
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UnreadableSource(
            f"not {error.encoding.upper()} text (byte 0x{data[error.start]:02x} on line {line})"
        ) from error
    except SyntaxError as error:
        raise UnreadableSource("not UTF-8 text, and no encoding declared") from error
    if "\0" in text:
        raise UnreadableSource("not Python source (it contains null bytes)")
    return SourceText(text, encoding)


def _encoding(data: bytes) -> str:
    try:
        return tokenize.detect_encoding(io.BytesIO(data).readline)[0]
    except SyntaxError as error:
        if "unknown encoding" in str(error.msg):
            return "utf-8"  # what `coding: future_fstrings` and its like are without their package
        raise


def lines_of(path: str, cell: int | None = None) -> tuple[str, ...]:
    """The lines of a file or of a notebook's cell without their endings; none if there is no such source.

    What was typed into a notebook or an interactive session is no file, and Python keeps its lines.
    """
    try:
        version = os.stat(path)
    except OSError:
        import linecache  # what is no file is seldom asked for

        return tuple(line.rstrip("\r\n") for line in linecache.getlines(path))
    lines = _lines_of_file(path, (version.st_ino, version.st_mtime_ns, version.st_size))
    return lines if cell is None else _lines_of_cell(lines, cell)


@lru_cache(maxsize=64)
def _lines_of_file(path: str, version: tuple[int, ...]) -> tuple[str, ...]:
    """`version` tells apart what a path has held: it may be edited, or mean another file elsewhere."""
    try:
        return tuple(line.rstrip("\r\n") for line in read_source(path).lines)
    except UnreadableSource:
        return ()


@lru_cache(maxsize=64)
def _lines_of_cell(lines: tuple[str, ...], number: int) -> tuple[str, ...]:
    from gradclinic.cells import NotANotebook, code_cells, document_of  # few sources are notebooks

    try:
        cells = code_cells(document_of("\n".join(lines)))
    except NotANotebook:
        return ()
    return next((tuple(cell.text.split("\n")) for cell in cells if cell.number == number), ())
