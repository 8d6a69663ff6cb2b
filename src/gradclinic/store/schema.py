"""The tables of a store, and how numbers lie in them."""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Sequence
from pathlib import Path

VERSION = 1

# Arrays over tensors are packed single-precision floats in the order of `tensors`. SQLite keeps no
# NaN: it reads back as NULL, and an event tells what was not a number.
_TABLES = """
CREATE TABLE about (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
CREATE TABLE optimizers (id TEXT PRIMARY KEY, name TEXT, type TEXT) WITHOUT ROWID;
CREATE TABLE tensors (optimizer TEXT, position INTEGER, name TEXT, shape TEXT, role TEXT,
    PRIMARY KEY (optimizer, position)) WITHOUT ROWID;
CREATE TABLE steps (optimizer TEXT, step INTEGER, time REAL, loss REAL, norm REAL, used REAL, max_norm REAL,
    scale REAL, skipped INTEGER, rates BLOB, PRIMARY KEY (optimizer, step)) WITHOUT ROWID;
CREATE TABLE gradients (optimizer TEXT, step INTEGER, norms BLOB,
    PRIMARY KEY (optimizer, step));
CREATE TABLE samples (optimizer TEXT, step INTEGER, weights BLOB, updates BLOB, largest BLOB, zeros BLOB,
    against REAL, PRIMARY KEY (optimizer, step));
CREATE TABLE exponents (optimizer TEXT, step INTEGER, counts BLOB, PRIMARY KEY (optimizer, step));
CREATE TABLE activations (optimizer TEXT, kind TEXT, ordinal INTEGER, place TEXT, hidden INTEGER,
    units INTEGER, PRIMARY KEY (optimizer, kind, ordinal)) WITHOUT ROWID;
CREATE TABLE activity (optimizer TEXT, step INTEGER, kind TEXT, ordinal INTEGER, dead REAL, pinned REAL,
    size REAL, PRIMARY KEY (optimizer, step, kind, ordinal)) WITHOUT ROWID;
CREATE TABLE events (id INTEGER PRIMARY KEY, step INTEGER, time REAL, kind TEXT, severity TEXT, text TEXT);
CREATE TABLE documents (name TEXT PRIMARY KEY, time REAL, text TEXT) WITHOUT ROWID;
"""


def connect(path: Path, *, patience: float) -> sqlite3.Connection:
    """A connection to write by; the file is made ready if it is new.

    Nothing waits for the disk: the kernel keeps what a killed process wrote, and a torn file after
    a power cut costs pictures, not training.
    """
    connection = sqlite3.connect(path, timeout=patience, isolation_level=None)
    try:
        connection.execute("PRAGMA synchronous = OFF")
        if connection.execute("PRAGMA user_version").fetchone()[0] == 0:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.executescript(f"BEGIN IMMEDIATE; {_TABLES} PRAGMA user_version = {VERSION}; COMMIT;")
    except BaseException:
        connection.close()
        raise
    return connection


def packed(values: Sequence[float]) -> bytes:
    return array("f", values).tobytes()


def unpacked(blob: bytes | None) -> array[float]:
    values = array("f")
    values.frombytes(blob or b"")
    return values
