"""Telling what hands did to gradients and weights that no observed call accounts for.

Every observed call leaves a mark of the state it left behind. What differs from that mark when the
next one begins was done by hand: `p.grad = None`, `p.grad.zero_()`, `p.grad.copy_(g)`,
`p.sub_(lr * p.grad)`. Writes through `.data` move no version counter, so where the tape would
otherwise accuse (gradients not cleared, a step without any, no step at all) values are looked at.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import islice

import torch

from gradclinic.facts import EventKind
from gradclinic.runtime.actors import Actors, parameters_of
from gradclinic.runtime.statistics import meter

Versions = tuple[tuple[int, int] | None, ...]
_SAMPLED = 4
_SAMPLE_SIZE = 4096


@dataclass
class _Mark:
    gradients: Versions
    cleared: bool
    """The gradients were cleared and nothing has put any there since."""
    weights: tuple[int, ...] | None = None
    """Versions of the weights at the last backward; None before the first and after a step."""
    sample: tuple[float, ...] | None = None
    """Some of the weights at the last backward, while the optimizer has made no step at all."""
    stepped: bool = False


class Gradients:
    def __init__(self, actors: Actors) -> None:
        self._actors = actors
        self._marks: dict[str, _Mark] = {}

    def unaccounted(self) -> Iterator[tuple[str, EventKind]]:
        """What was done by hand, and to which optimizer, since the last observed call."""
        for actor, optimizer in self._actors.optimizers():
            mark = self._marks.get(actor)
            parameters = parameters_of(optimizer)
            if mark is None or len(mark.gradients) != len(parameters):
                continue
            if _weights_written(mark, parameters):
                yield actor, EventKind.WEIGHT_WRITE
            kind = _gradients_written(mark, parameters)
            if kind is not None:
                yield actor, kind

    def mark(self, after: EventKind, concerned: Collection[str] = ()) -> frozenset[str]:
        """Remember the state an observed call left; returns the optimizers whose gradients moved."""
        moved = set()
        for actor, optimizer in self._actors.optimizers():
            parameters = parameters_of(optimizer)
            now = _versions(parameters)
            mark = self._marks.get(actor)
            if mark is None:
                mark = self._marks[actor] = _Mark(now, cleared=False)
                changed = any(now)
            else:
                changed = mark.gradients != now
                mark.gradients = now
            if changed:
                moved.add(actor)
            if after is EventKind.BACKWARD and (changed or actor in concerned):
                mark.cleared = False
                mark.weights = tuple(parameter._version for parameter in parameters)
                mark.sample = None if mark.stepped else _sample(parameters)
            elif after is EventKind.ZERO_GRAD and actor in concerned:
                mark.cleared = True
            elif after is EventKind.STEP and actor in concerned:
                mark.stepped = True
                mark.weights = mark.sample = None
        return frozenset(moved)


def _weights_written(mark: _Mark, parameters: list[torch.Tensor]) -> bool:
    if mark.weights is None:
        return False
    now = tuple(parameter._version for parameter in parameters)
    sample = None if mark.sample is None else _sample(parameters)
    written = now != mark.weights or (sample is not None and sample != mark.sample)
    mark.weights, mark.sample = None, None
    return written


def _gradients_written(mark: _Mark, parameters: list[torch.Tensor]) -> EventKind | None:
    now = _versions(parameters)
    if not any(now) and not any(mark.gradients):
        return None
    same = now == mark.gradients
    mark.gradients = now
    zero = _all_zero(parameters)
    if zero is None or (zero == mark.cleared and (same or zero)):
        return None
    mark.cleared = zero
    return EventKind.ZERO_GRAD if zero else EventKind.GRAD_WRITE


def _versions(parameters: list[torch.Tensor]) -> Versions:
    return tuple(
        None if (gradient := parameter.grad) is None else (id(gradient), gradient._version)
        for parameter in parameters
    )


@torch.no_grad()
def _all_zero(parameters: list[torch.Tensor]) -> bool | None:
    """None where all the gradients there are lie on other ranks."""
    gradients = [meter.local(parameter.grad) for parameter in parameters if parameter.grad is not None]
    if any(bool(gradient.any()) for gradient in gradients):
        return False
    return True if not gradients or any(gradient.numel() for gradient in gradients) else None


@torch.no_grad()
def _sample(parameters: list[torch.Tensor]) -> tuple[float, ...]:
    """Sums over a few small parameters: enough to see that somebody moves the weights."""
    small = (p for p in parameters if p.requires_grad and p.numel() <= _SAMPLE_SIZE)
    return tuple(float(meter.local(p).sum()) for p in islice(small, _SAMPLED))
