"""Reads a store, be it finished, still written, or left behind by a process that was killed."""

from __future__ import annotations

import contextlib
import json
import math
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from gradclinic.errors import UsageError
from gradclinic.facts.training import ActivationSample, Sample, Step, TensorInfo
from gradclinic.store.schema import VERSION, unpacked

Row = TypeVar("Row")
Columns = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Event:
    step: int
    time: float
    kind: str
    severity: str
    text: str


@dataclass(frozen=True, slots=True)
class Activity:
    """One activation function of the model over the run."""

    kind: str
    ordinal: int
    place: str
    hidden: bool
    samples: tuple[ActivationSample, ...]


@dataclass(frozen=True)
class StoredTraining:
    """What is kept of one optimizer's work, thinned to what a picture can show."""

    name: str
    type: str
    tensors: tuple[TensorInfo, ...]
    steps: tuple[Step, ...]
    times: tuple[float, ...]
    gradients: tuple[tuple[int, Sequence[float]], ...]
    """Norms of each tensor's gradient at some of the steps."""
    samples: tuple[Sample, ...]
    activities: tuple[Activity, ...]
    spreads: tuple[tuple[int, Sequence[float]], ...] = ()
    """Histograms of all gradients together by power of two, at some of the steps."""


@dataclass(frozen=True)
class StoredRun:
    path: Path
    about: Mapping[str, Any]
    trainings: tuple[StoredTraining, ...]
    events: tuple[Event, ...]
    documents: Mapping[str, Any]

    @property
    def state(self) -> str:
        """`finished`, `running`, or `ended without a word` when its process is gone."""
        if "ended" in self.about:
            return "finished"
        here = self.about.get("host") == os.uname().nodename
        return "running" if not here or _lives(self.about.get("process")) else "ended without a word"


def read(path: Path, *, points: int = 2000, columns: int = 400) -> StoredRun:
    """`points` of a curve and `columns` of a heat map at most."""
    with _opened(path) as connection:
        about = _about(connection)
        optimizers = connection.execute("SELECT id, name, type FROM optimizers ORDER BY id").fetchall()
        events = connection.execute("SELECT step, time, kind, severity, text FROM events ORDER BY id")
        documents = connection.execute("SELECT name, text FROM documents")
        return StoredRun(
            path,
            about,
            tuple(_training(connection, id, name, type, points, columns) for id, name, type in optimizers),
            tuple(Event(*row) for row in events),
            {name: json.loads(text) for name, text in documents},
        )


def state_of(path: Path) -> tuple[dict[str, Any], str]:
    """What is known about a run, and a word that changes whenever more was written."""
    with _opened(path) as connection:
        marks = connection.execute(
            "SELECT (SELECT group_concat(m) FROM (SELECT max(step) m FROM steps GROUP BY optimizer)),"
            " (SELECT max(time) FROM documents), (SELECT max(id) FROM events), (SELECT count(*) FROM about)"
        ).fetchone()
        return _about(connection), " ".join(map(str, marks))


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    try:
        with contextlib.closing(_connection(path)) as connection:
            connection.execute("BEGIN")
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if version not in (0, VERSION):
                raise UsageError(f"{path} was written by a newer gradclinic; update this one to read it")
            yield connection
    except sqlite3.Error as error:
        raise UsageError(f"{path} is not a run of gradclinic, or not readable: {error}") from error


def _connection(path: Path) -> sqlite3.Connection:
    address = f"file:{quote(str(path.absolute()))}"
    # Reading beside a writer takes a file of its own next to it; where none may be made there is no
    # writer either, unless its file is there already.
    alone = not os.access(path.parent, os.W_OK) and not path.with_name(f"{path.name}-wal").exists()
    how = "immutable=1" if alone else "mode=ro"
    return sqlite3.connect(f"{address}?{how}", uri=True, timeout=2.0, isolation_level=None)


def _about(connection: sqlite3.Connection) -> dict[str, Any]:
    return {key: json.loads(value) for key, value in connection.execute("SELECT key, value FROM about")}


def _training(
    connection: sqlite3.Connection, optimizer: str, name: str, type: str, points: int, columns: int
) -> StoredTraining:
    ask = connection.execute
    tensors = ask("SELECT name, shape, role FROM tensors WHERE optimizer = ? ORDER BY position", (optimizer,))
    rows = ask(
        "SELECT step, loss, norm, used, rates, scale, skipped, max_norm, time FROM steps"
        " WHERE optimizer = ? ORDER BY step",
        (optimizer,),
    ).fetchall()
    shown = _with_extremes(rows, points)
    return StoredTraining(
        name,
        type,
        tuple(TensorInfo(name, tuple(json.loads(shape)), role) for name, shape, role in tensors),
        tuple(_step(*row[:8]) for row in shown),
        tuple(row[8] for row in shown),
        tuple(
            (step, unpacked(blob))
            for step, blob in _some(connection, "gradients", "norms", optimizer, columns)
        ),
        tuple(
            Sample(step, unpacked(weights), unpacked(updates), unpacked(largest), unpacked(zeros), against)
            for step, weights, updates, largest, zeros, against in _some(
                connection, "samples", "weights, updates, largest, zeros, against", optimizer, columns
            )
        ),
        tuple(_activities(connection, optimizer, columns)),
        tuple(
            (step, unpacked(blob))
            for step, blob in _some(connection, "exponents", "counts", optimizer, columns)
        ),
    )


def _step(
    index: int,
    loss: float | None,
    norm: float | None,
    used: float | None,
    rates: bytes,
    scale: float | None,
    skipped: int,
    limit: float | None,
) -> Step:
    nan = math.nan
    norm, used = nan if norm is None else norm, nan if used is None else used
    return Step(index, loss, norm, used, tuple(unpacked(rates)), scale, bool(skipped), limit)


def _with_extremes(rows: list[Columns], most: int) -> list[Columns]:
    """Of each bucket the rows with the largest and the smallest loss, so that no spike is lost."""
    if len(rows) <= most:
        return rows
    size = -(-len(rows) // (most // 2))
    shown = [rows[0]]
    for start in range(1, len(rows), size):
        bucket = rows[start : start + size]
        known = [row for row in bucket if row[1] is not None] or bucket
        ends = {id(row): row for row in (min(known, key=_loss), max(known, key=_loss))}
        shown.extend(sorted(ends.values(), key=lambda row: row[0]))
    return shown if shown[-1] is rows[-1] else [*shown, rows[-1]]


def _loss(row: Columns) -> float:
    return row[1] if row[1] is not None else 0.0


def _some(
    connection: sqlite3.Connection, table: str, columns: str, optimizer: str, most: int
) -> list[Columns]:
    """Rows of at most so many steps, evenly spread over those that are there."""
    steps = connection.execute(f"SELECT step FROM {table} WHERE optimizer = ? ORDER BY step", (optimizer,))
    wanted = [step for (step,) in steps]
    stride = max(1, -(-len(wanted) // most))
    asked = f"SELECT step, {columns} FROM {table} WHERE optimizer = ? AND step = ?"
    return [connection.execute(asked, (optimizer, step)).fetchone() for step in wanted[::stride]]


def _activities(connection: sqlite3.Connection, optimizer: str, most: int) -> Iterator[Activity]:
    known = connection.execute(
        "SELECT kind, ordinal, place, hidden FROM activations WHERE optimizer = ? ORDER BY ordinal",
        (optimizer,),
    ).fetchall()
    for kind, ordinal, place, hidden in known:
        rows = connection.execute(
            "SELECT step, dead, pinned, size FROM activity"
            " WHERE optimizer = ? AND kind = ? AND ordinal = ? ORDER BY step",
            (optimizer, kind, ordinal),
        ).fetchall()
        stride = max(1, -(-len(rows) // most))
        yield Activity(
            kind, ordinal, place, bool(hidden), tuple(ActivationSample(*row) for row in rows[::stride])
        )


def _lives(process: object) -> bool:
    if not isinstance(process, int):
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
