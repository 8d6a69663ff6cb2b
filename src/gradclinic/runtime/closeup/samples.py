"""Where the samples of a batch lie on the way to the loss, told from shapes alone.

A loss of one target each says how many samples there are. A reshape that begins with an axis of that
length, of a tensor that has it further in, cuts samples apart; a recurrent or attention layer that takes
the first axis for time, and finds an axis of that length there, reads from sample to sample. Where another
axis could be that of the samples, folded with something else, nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

import torch

from gradclinic.facts.location import Location
from gradclinic.facts.samples import MovedSamples

_RESHAPES = frozenset({"view", "reshape"})
_RECURRENT = frozenset({"lstm", "gru", "rnn_tanh", "rnn_relu"})
_BATCH_FIRST = 8
"""Which argument of a recurrent function that is."""
_ATTENTION = "multi_head_attention_forward"
_MOST = 2_000

Shape = tuple[int, ...]


class Samples:
    def __init__(self) -> None:
        self._reshaped: dict[tuple[Location, Shape, Shape], str] = {}
        self._read_in_time: dict[tuple[Location, Shape], str] = {}
        self._found: dict[Location, MovedSamples] = {}

    def note(self, name: str, args: tuple[Any, ...], result: Any, where: Location) -> None:
        if not args or not isinstance(args[0], torch.Tensor) or len(self._reshaped) > _MOST:
            return
        given = tuple(args[0].shape)
        if name in _RESHAPES and isinstance(result, torch.Tensor) and result.requires_grad:
            self._reshaped[where, given, tuple(result.shape)] = name
        elif len(given) == 3 and (
            name == _ATTENTION or (name in _RECURRENT and len(args) > _BATCH_FIRST and not args[_BATCH_FIRST])
        ):
            self._read_in_time[where, given] = name

    def judged(self, scores: torch.Tensor, target: torch.Tensor) -> None:
        """A loss compares these; with one target each, their number is that of the samples."""
        one_each = target.dim() == 1 or (target.dim() == 2 and target.shape[1] == 1)
        if not one_each or not scores.requires_grad or scores.shape[:1] != target.shape[:1]:
            return
        count = target.shape[0]
        for (where, given, made), name in self._reshaped.items():
            if _cut_apart(given, made, count):
                self._tell(MovedSamples(where, name, given, count, made))
        for (where, given), name in self._read_in_time.items():
            if count > 1 and given[0] == count and given[1] > 1 and given[1] % count:
                layer = "attention" if name == _ATTENTION else name
                self._tell(MovedSamples(where, layer, given, count))

    def passed(self) -> None:
        """The backward of what was noted so far has begun."""
        self._reshaped.clear()
        self._read_in_time.clear()

    def found(self) -> Iterator[MovedSamples]:
        yield from self._found.values()

    def _tell(self, moved: MovedSamples) -> None:
        self._found.setdefault(moved.where, moved)


def _cut_apart(given: Shape, made: Shape, count: int) -> bool:
    if count < 2 or given.count(count) != 1 or made.count(count) != 1 or made[0] != count:
        return False
    before = prod(given[: given.index(count)])
    return before > 1 and before % count != 0
