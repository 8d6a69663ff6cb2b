"""The code cells of a Jupyter notebook, as they stand in its file."""

from __future__ import annotations

import json
from typing import Any

from gradclinic.frozen import frozen


class NotANotebook(Exception):
    """The message says in a few words why the text is no notebook."""


@frozen
class Cell:
    number: int
    """Counted from 1 over all cells, those of text included: the place where a reader finds it."""
    text: str


def document_of(text: str) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise NotANotebook("not a notebook (no valid JSON)") from error
    if not isinstance(document, dict) or not isinstance(document.get("cells"), list):
        raise NotANotebook("not a notebook of format 4 (no list of cells)")
    return document


def code_cells(document: dict[str, Any]) -> list[Cell]:
    """The cells of Python; none if the notebook is written in another language."""
    metadata = document.get("metadata")
    if not isinstance(metadata, dict) or not _is_python(metadata):
        return []
    return [
        Cell(number, source_of(cell))
        for number, cell in enumerate(document["cells"], start=1)
        if isinstance(cell, dict) and cell.get("cell_type") == "code"
    ]


def source_of(cell: dict[str, Any]) -> str:
    source = cell.get("source", "")
    if isinstance(source, list):
        return "".join(part for part in source if isinstance(part, str))
    return source if isinstance(source, str) else ""


def _is_python(metadata: dict[str, Any]) -> bool:
    """Notebooks that do not name their language are old, and of Python."""
    for key, name in (("language_info", "name"), ("kernelspec", "language")):
        told = metadata.get(key)
        if isinstance(told, dict) and isinstance(told.get(name), str):
            return bool(told[name].lower() in ("python", "ipython"))
    return True
