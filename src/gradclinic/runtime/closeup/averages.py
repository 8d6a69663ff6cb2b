"""Averages that are updated with the weights they are made of: both must not be one memory."""

from __future__ import annotations

import weakref
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from math import isclose
from typing import Any

import torch

from gradclinic.facts.averages import SelfAverage
from gradclinic.facts.location import Location
from gradclinic.runtime.closeup.trail import tensors_in
from gradclinic.runtime.register import Entry
from gradclinic.runtime.values import readable

_MIXES = frozenset({"add_", "lerp_", "_foreach_add_", "_foreach_lerp_"})
_SHARES = frozenset({"mul", "__mul__", "__rmul__"})
_SUMS = frozenset({"add", "__add__", "__radd__"})
_RECENT = 4


class Averages:
    def __init__(self, entries: Mapping[int, Entry]) -> None:
        self._entries = entries
        self._mixed: defaultdict[Location, tuple[set[int], set[int]]] = defaultdict(lambda: (set(), set()))
        """Lines that mix parameters into themselves: which, and after how many steps it was done."""
        self._shares: deque[tuple[weakref.ref[torch.Tensor], int, float]] = deque(maxlen=_RECENT)
        """The latest products with a number between 0 and 1: the address of what was multiplied, by what."""

    def computed(
        self, called: str, args: tuple[Any, ...], result: Any, where: Location, steps: int
    ) -> None:
        """`average * 0.99 + live * 0.01`, written out; what has a gradient is computed with, not kept."""
        if len(args) != 2 or not isinstance(result, torch.Tensor) or result.requires_grad:
            return
        if called in _SHARES:
            one, other = args if isinstance(args[0], torch.Tensor) else args[::-1]
            if isinstance(other, float) and 0 < other < 1 and readable(one) and not one.is_sparse:
                self._shares.append((weakref.ref(result), one.data_ptr(), other))
        elif called in _SUMS:
            parts = [(address, share) for made, address, share in self._shares if _is_one_of(made(), args)]
            if len(parts) == 2 and parts[0][0] == parts[1][0] and isclose(parts[0][1] + parts[1][1], 1.0):
                self._add(where, parts[0][0], steps)

    def note(
        self, called: str, args: tuple[Any, ...], kwargs: dict[str, Any], where: Location, steps: int
    ) -> None:
        if called not in _MIXES or len(args) < 2 or not _is_share(called, kwargs):
            return
        for target, source in zip(tensors_in(args[:1]), tensors_in(args[1:2]), strict=False):
            if _one_memory(target, source):
                self._add(where, target.data_ptr(), steps)

    def _add(self, where: Location, address: int, steps: int) -> None:
        """Who lies at `address` is asked now: `p.data = …` puts it elsewhere."""
        mixed, done = self._mixed[where]
        mixed.update(key for key, entry in self._entries.items() if _lies_at(address, entry))
        done.add(steps)

    def found(self) -> Iterator[SelfAverage]:
        for where, (mixed, done) in self._mixed.items():
            names = tuple(e.name for key, e in self._entries.items() if key in mixed and e.holders)
            if names:
                yield SelfAverage(where, names, len(done))


def _lies_at(address: int, entry: Entry) -> bool:
    parameter = entry.parameter()
    return parameter is not None and readable(parameter) and parameter.data_ptr() == address


def _is_one_of(tensor: torch.Tensor | None, args: tuple[Any, ...]) -> bool:
    return tensor is not None and any(tensor is arg for arg in args)


def _is_share(called: str, kwargs: dict[str, Any]) -> bool:
    """`average.add_(live, alpha=0.01)`; weight decay by hand subtracts, and so has a negative alpha."""
    alpha = kwargs.get("alpha")
    return "lerp" in called or (isinstance(alpha, float) and 0 < alpha < 1)


def _one_memory(target: torch.Tensor, source: torch.Tensor) -> bool:
    return (
        type(target) in (torch.Tensor, torch.nn.Parameter)
        and target.shape == source.shape
        and target.numel() > 0
        and target.data_ptr() == source.data_ptr() != 0
    )
