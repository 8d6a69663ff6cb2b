"""Keeps a table short however long the run is."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

_FIRST = 64
"""Updates at the beginning that always stay."""


@dataclass
class Sieve:
    """Rows of one optimizer in one table: the first, the last, and of those between one in n.

    n doubles whenever more than `most` rows are there; SQLite uses the freed pages again.
    """

    table: str
    most: int
    stride: int = 1
    _rows: int = 0
    _swept: int = _FIRST

    def sweep(self, connection: sqlite3.Connection, optimizer: str, written: int, latest: int) -> None:
        """`written` more rows are there, the last of them for update `latest`: take out what is due."""
        self._rows += written
        recent = latest - self.most // 4
        if self.stride > 1 and recent > self._swept:
            self._take_out(connection, optimizer, self._swept, recent)
        if self._rows > self.most:
            self.stride *= 2
            self._take_out(connection, optimizer, _FIRST, recent)

    def _take_out(self, connection: sqlite3.Connection, optimizer: str, first: int, end: int) -> None:
        # Of each stretch of updates the first that is there: not every update need have been recorded.
        within = "optimizer = :optimizer AND step BETWEEN :first AND :last"
        gone = connection.execute(
            f"DELETE FROM {self.table} WHERE {within} AND step NOT IN"
            f" (SELECT min(step) FROM {self.table} WHERE {within} GROUP BY step / :stride)",
            {"optimizer": optimizer, "first": first, "last": end - 1, "stride": self.stride},
        )
        self._rows -= gone.rowcount
        self._swept = max(self._swept, end)
