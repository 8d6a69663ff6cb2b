"""Adds to the store of a run that has ended what only its diagnosis can tell."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gradclinic.store.folder import files_of
from gradclinic.store.schema import connect

_PATIENCE = 2.0
FINDING = "finding"
"""The kind of events that the diagnosis of an unfinished run leaves."""


def add_documents(run: Path, documents: Mapping[str, Mapping[str, Any]], about: Mapping[str, object]) -> None:
    """To the file of the main process. A run that left no file did not train, and keeps nothing."""
    path = next(files_of(run), None)
    if path is None:
        return
    # What cannot be written here costs a page its first section, and the report was printed already.
    with contextlib.suppress(OSError, sqlite3.Error), _writing(path) as connection:
        connection.executemany(
            "REPLACE INTO documents VALUES (?, ?, ?)",
            [(name, time.time(), json.dumps(text, ensure_ascii=False)) for name, text in documents.items()],
        )
        connection.executemany(
            "REPLACE INTO about VALUES (?, ?)", [(key, json.dumps(value)) for key, value in about.items()]
        )
        if "diagnosis" in documents:
            _take_back(connection, {finding["code"] for finding in documents["diagnosis"]["findings"]})


def _take_back(connection: sqlite3.Connection, found: set[str]) -> None:
    """Marks for what seemed wrong on the way and was not in the end."""
    told = connection.execute("SELECT id, text FROM events WHERE kind = ?", (FINDING,)).fetchall()
    gone = [(id,) for id, text in told if text.partition(" ")[0] not in found]
    connection.executemany("DELETE FROM events WHERE id = ?", gone)


@contextlib.contextmanager
def _writing(path: Path) -> Any:
    with contextlib.closing(connect(path, patience=_PATIENCE)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield connection
        connection.execute("COMMIT")
