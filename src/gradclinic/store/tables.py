"""A batch goes into the tables of a store, and the tables stay short."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Sequence
from typing import TypeVar

from gradclinic.facts.exponents import together
from gradclinic.facts.training import Activation, Sample, Step
from gradclinic.store.batch import Batch
from gradclinic.store.schema import packed
from gradclinic.store.sieve import Sieve

Row = TypeVar("Row")
_MOST_STEPS = 12_000
_MOST_ACTIVITY = 20_000
_MOST_SPREADS = 2_000
_MOST_ARRAYS, _FEWEST_ARRAYS = 4_000, 64
_BYTES_OF_ARRAYS = 12_000_000
"""For all arrays over the tensors of one optimizer in one table."""


class Tables:
    def __init__(self) -> None:
        self._sieves: dict[tuple[str, str], Sieve] = {}
        self._tensors: dict[str, int] = {}

    def put(self, connection: sqlite3.Connection, batch: Batch, most: int) -> None:
        """`most`: updates of one optimizer to write; of more, some are left out."""
        now, put = time.time(), connection.executemany
        put("REPLACE INTO about VALUES (?, ?)", [(k, json.dumps(value)) for k, value in batch.about.items()])
        put("REPLACE INTO documents VALUES (?, ?, ?)", [(k, now, doc) for k, doc in batch.documents.items()])
        put("INSERT INTO events (step, time, kind, severity, text) VALUES (?, ?, ?, ?, ?)", batch.events)
        for actor, tensors in batch.introduced.values():
            self._tensors[actor.id] = len(tensors)
            put("REPLACE INTO optimizers VALUES (?, ?, ?)", [(actor.id, actor.name, actor.type)])
            rows = [(actor.id, i, t.name, json.dumps(t.shape), t.role) for i, t in enumerate(tensors)]
            put("REPLACE INTO tensors VALUES (?, ?, ?, ?, ?)", rows)
        for optimizer, steps in batch.steps.items():
            self._steps(connection, optimizer, _spread(steps, most))
        for optimizer, samples in batch.samples.items():
            self._samples(connection, optimizer, _spread(samples, most))
        for optimizer, activations in batch.activations.items():
            self._activations(connection, optimizer, activations)

    def _steps(
        self, connection: sqlite3.Connection, optimizer: str, steps: Sequence[tuple[float, Step]]
    ) -> None:
        connection.executemany(
            "REPLACE INTO steps VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (optimizer, s.index, at, s.loss, s.norm, s.used, s.limit, s.scale, s.skipped, packed(s.rates))
                for at, s in steps
            ],
        )
        arrays = [(optimizer, s.index, packed(s.gradients)) for _, s in steps if s.gradients]
        connection.executemany("REPLACE INTO gradients VALUES (?, ?, ?)", arrays)
        latest = steps[-1][1].index
        self._sieve("steps", optimizer, _MOST_STEPS).sweep(connection, optimizer, len(steps), latest)
        sieve = self._sieve("gradients", optimizer, self._affordable(optimizer, 1))
        sieve.sweep(connection, optimizer, len(arrays), latest)

    def _samples(self, connection: sqlite3.Connection, optimizer: str, samples: Sequence[Sample]) -> None:
        rows = [
            (optimizer, s.index, *map(packed, (s.weights, s.updates, s.largest, s.zeros)), s.against)
            for s in samples
        ]
        connection.executemany("REPLACE INTO samples VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        sieve = self._sieve("samples", optimizer, self._affordable(optimizer, 4))
        sieve.sweep(connection, optimizer, len(rows), samples[-1].index)
        spreads = [(optimizer, s.index, packed(together(s.exponents))) for s in samples if s.exponents]
        connection.executemany("REPLACE INTO exponents VALUES (?, ?, ?)", spreads)
        if spreads:
            sieve = self._sieve("exponents", optimizer, _MOST_SPREADS)
            sieve.sweep(connection, optimizer, len(spreads), samples[-1].index)

    def _activations(
        self, connection: sqlite3.Connection, optimizer: str, told: Sequence[Activation]
    ) -> None:
        connection.executemany(
            "REPLACE INTO activations VALUES (?, ?, ?, ?, ?, ?)",
            [(optimizer, a.kind, a.ordinal, str(a.where or ""), a.hidden, a.units) for a in told],
        )
        rows = [
            (optimizer, one.index, a.kind, a.ordinal, one.dead, one.pinned, one.size)
            for a in told
            for one in a.samples
        ]
        connection.executemany("REPLACE INTO activity VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        sieve = self._sieve("activity", optimizer, _MOST_ACTIVITY)
        sieve.sweep(connection, optimizer, len(rows), told[-1].samples[-1].index)

    def _sieve(self, table: str, optimizer: str, most: int) -> Sieve:
        return self._sieves.setdefault((table, optimizer), Sieve(table, most))

    def _affordable(self, optimizer: str, arrays: int) -> int:
        """How many rows of so many arrays over the tensors may lie in a table."""
        row = 4 * arrays * max(1, self._tensors.get(optimizer, 1))
        return max(_FEWEST_ARRAYS, min(_MOST_ARRAYS, _BYTES_OF_ARRAYS // row))


def _spread(rows: list[Row], most: int) -> list[Row]:
    """At most so many of them, evenly spread, the last among them."""
    stride = -(-len(rows) // most)
    return rows if stride <= 1 else rows[::-1][::stride][::-1]
