"""A list that stays short however long the run is."""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class Thinned(Generic[T]):
    """The first rows, the last rows, and of those between every n-th, with n growing as needed."""

    def __init__(self, first: int = 64, last: int = 256, between: int = 256) -> None:
        self._first: list[T] = []
        self._between: list[T] = []
        self._last: deque[T] = deque()
        self._sizes = first, last, between
        self._stride = 1
        self._passed = 0

    def append(self, row: T) -> None:
        first, last, between = self._sizes
        if len(self._first) < first:
            self._first.append(row)
            return
        self._last.append(row)
        if len(self._last) <= last:
            return
        oldest = self._last.popleft()
        if self._passed % self._stride == 0:
            self._between.append(oldest)
            if len(self._between) > between:
                self._between = self._between[::2]
                self._stride *= 2
        self._passed += 1

    def rows(self) -> tuple[T, ...]:
        return (*self._first, *self._between, *self._last)
