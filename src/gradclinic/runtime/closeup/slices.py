"""Batches that are slices of stored data, written to before the model reads them."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from gradclinic.facts.location import Location
from gradclinic.facts.stored import SliceWritten
from gradclinic.runtime.closeup.trail import Trail

_CHANGES = frozenset(
    {"__iadd__", "__isub__", "__imul__", "__itruediv__", "add_", "sub_", "mul_", "div_", "clamp_"}
)
"""Unlike an assignment these need what was there before: data, not a buffer to be filled."""


@dataclass
class _Written:
    base: weakref.ref[torch.Tensor]
    operation: str
    rows: tuple[int, int]
    steps: set[int] = field(default_factory=set)
    read: bool = False


class Slices:
    def __init__(self, trail: Trail) -> None:
        self._trail = trail
        self._written: dict[Location, _Written] = {}

    def write(self, called: str, target: Any, where: Location, step: int) -> None:
        base = target._base if called in _CHANGES and isinstance(target, torch.Tensor) else None
        if base is None or not _is_batch_of(target, base) or self._trail.of(base) is not None:
            return
        known = self._written.get(where)
        if known is None or known.base() is not base:
            rows = (len(target), len(base))
            known = self._written[where] = _Written(weakref.ref(base), called, rows)
        known.steps.add(step)

    def read(self, given: Any) -> None:
        """Weights are applied to this."""
        base = given._base if self._written and isinstance(given, torch.Tensor) else None
        for one in self._written.values() if base is not None else ():
            one.read |= one.base() is base

    def found(self) -> Iterator[SliceWritten]:
        for where, one in self._written.items():
            if one.read:
                yield SliceWritten(where, one.operation, *one.rows, len(one.steps))


def _is_batch_of(target: torch.Tensor, base: torch.Tensor) -> bool:
    return (
        not base.requires_grad
        and target.dim() == base.dim()
        and target.dim() > 1
        and target.shape[1:] == base.shape[1:]
        and len(target) < len(base)
    )
