"""Averages that are updated with the weights they are made of: both must not be one memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import torch

from gradclinic.facts.averages import SelfAverage
from gradclinic.facts.location import Location
from gradclinic.runtime.closeup.trail import tensors_in
from gradclinic.runtime.register import Entry

_MIXES = frozenset({"add_", "lerp_", "_foreach_add_", "_foreach_lerp_"})


class Averages:
    def __init__(self) -> None:
        self._mixed: dict[Location, Counter[int]] = {}
        """How often each line mixed some memory into itself, by the address."""

    def note(self, called: str, args: tuple[Any, ...], kwargs: dict[str, Any], where: Location) -> None:
        if called not in _MIXES or len(args) < 2 or not _is_share(called, kwargs):
            return
        for target, source in zip(tensors_in(args[:1]), tensors_in(args[1:2]), strict=False):
            if _one_memory(target, source):
                self._mixed.setdefault(where, Counter())[target.data_ptr()] += 1

    def found(self, entries: Iterable[Entry]) -> Iterator[SelfAverage]:
        trained = {entry.storage: entry.name for entry in entries if entry.storage and entry.holders}
        for where, mixed in self._mixed.items():
            names = tuple(trained[address] for address in mixed if address in trained)
            if names:
                yield SelfAverage(where, names, max(mixed.values()))


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
