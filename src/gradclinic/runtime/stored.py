"""Rows of a data set before and after they are fetched: reading must not write."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.utils.data import Dataset, IterableDataset, Subset

from gradclinic.facts.location import Location
from gradclinic.facts.stored import Mutation, StoredData
from gradclinic.runtime.scene import Scene

_FETCHES = 6
_MOST_ROWS = 64
_MOST_NUMBERS = 2_000_000
_LAYERS = 4


class StoredRows:
    """The first fetches of every data set, copied before and compared after."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._fetches: dict[int, int] = {}
        """By the identity of the data set: it may be a tensor, which is equal to none."""
        self._before: list[tuple[str, list[int], list[Any], Any]] = []
        self._writes = 0
        self._found: dict[str, Mutation] = {}

    @torch.no_grad()
    def before(self, fetcher: Any, indices: Any, *args: Any) -> None:
        self._before.clear()
        fetches = self._fetches.get(id(fetcher.dataset), 0)
        if fetches >= _FETCHES:
            return
        self._fetches[id(fetcher.dataset)] = fetches + 1
        dataset, rows = _underlying(fetcher.dataset, indices)
        if dataset is None:
            return
        self._writes = len(self._scene.writes)
        for name, stored in _columns(dataset):
            self._before.append((name, rows, [_row(stored, index) for index in rows], stored))

    @torch.no_grad()
    def after(self, _: object, fetcher: Any, *args: Any) -> None:
        for name, rows, copies, stored in self._before:
            for index, before in zip(rows, copies, strict=True):
                now = _row(stored, index)
                # What was empty may be a cache that is being filled.
                if before is not None and now is not None and before.any() and _differ(before, now):
                    self._found.setdefault(name, Mutation(name, index, self._place(fetcher.dataset)))
        self._before.clear()

    def tell(self) -> list[object]:
        if not self._fetches:
            return []
        return [StoredData(_FETCHES, tuple(self._found.values()), "the stored values differ after the fetch")]

    def _place(self, dataset: Any) -> Location | None:
        """The line that wrote, if it was seen, or the method that fetches."""
        code = getattr(getattr(type(dataset), "__getitem__", None), "__code__", None)
        while isinstance(dataset, Subset):
            dataset = dataset.dataset
            code = getattr(getattr(type(dataset), "__getitem__", None), "__code__", None)
        places = self._scene.recorder.places
        written = list(self._scene.writes)[self._writes :]
        if code is None or not places.is_users(code.co_filename):
            return written[-1][0] if written else None
        fetching = places.named(code.co_filename, code.co_firstlineno, code.co_qualname)
        return next((where for where, *_ in written if where.function == fetching.function), fetching)


def _underlying(dataset: Any, indices: Any) -> tuple[Any, list[int]]:
    """The data set that stores, and the rows of it that are about to be fetched."""
    rows = indices if isinstance(indices, Sequence) and not isinstance(indices, str) else [indices]
    for _ in range(_LAYERS):
        if not isinstance(dataset, Subset):
            break
        rows = [dataset.indices[row] for row in rows]
        dataset = dataset.dataset
    usable = isinstance(dataset, Dataset) and not isinstance(dataset, IterableDataset)
    if not usable or not all(isinstance(row, int) for row in rows):
        return None, []
    return dataset, list(rows)[:_MOST_ROWS]


def _columns(dataset: Any) -> Iterator[tuple[str, Any]]:
    """Attributes that hold one entry for each sample."""
    count = len(dataset)
    for name, value in vars(dataset).items():
        numbers = isinstance(value, torch.Tensor) or hasattr(value, "__array_interface__")
        if not numbers and not isinstance(value, list | tuple):
            continue
        if (not isinstance(value, torch.Tensor) or value.dim()) and len(value) == count:
            yield name, value


def _row(stored: Any, index: int) -> Any:
    """A copy of one entry, a tensor or an array; None for what is no numbers."""
    entry = stored[index]
    if isinstance(entry, torch.Tensor):
        # Single numbers may be counts or priorities, which are there to be written.
        plain = entry.layout is torch.strided and entry.device.type == "cpu" and entry.dim() > 0
        return entry.detach().clone() if plain and entry.numel() <= _MOST_NUMBERS else None
    numbers = getattr(getattr(entry, "dtype", None), "kind", "") in ("f", "i", "u", "b")
    if numbers and entry.ndim and entry.size <= _MOST_NUMBERS:
        return entry.copy()
    return None


def _differ(one: Any, other: Any) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype:
        return True
    return bool(((one != other) & ~((one != one) & (other != other))).any())
