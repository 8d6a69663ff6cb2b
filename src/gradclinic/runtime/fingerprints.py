"""Fingerprints of a model's copy on this rank, to be compared with those of other ranks afterwards."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from gradclinic.facts import Location, Look, Replica
from gradclinic.facts.ranks import Print
from gradclinic.runtime.statistics import meter
from gradclinic.runtime.values import readable

_EARLY = 5
_ROUND = frozenset(lead * 10**power for power in range(1, 8) for lead in (1, 2, 5))
_KEPT_FIRST, _KEPT_LAST = 8, 24
_VALUES = 4
_KEEP_COPIES_EQUAL = "torch.distributed.algorithms.ddp_comm_hooks"


class Fingerprints:
    """Of one copy of a model, taken before some of its updates."""

    def __init__(self, names: Sequence[str], ranks: Sequence[int], number: int) -> None:
        self.names = tuple(names)
        self._number = number
        self._first: list[Look] = []
        self._last: deque[Look] = deque(maxlen=_KEPT_LAST)
        self._rank = dist.get_rank()
        self._ranks = tuple(ranks)
        self.optimizer: str | None = None
        """The one whose steps are counted, the first to step."""
        self.stepped: Location | None = None
        self._updates = 0

    def due(self) -> bool:
        """Count one more update. Round numbers and what follows them: copies that are averaged every
        so many updates by hand are equal right after."""
        self._updates += 1
        now = self._updates
        powers = {now & (now - 1), (now - 1) & (now - 2)}
        return now <= _EARLY or 0 in powers or now in _ROUND or now - 1 in _ROUND

    def take(self, parameters: list[torch.Tensor | None], rates: tuple[float, ...]) -> None:
        """`parameters` in the order of the names."""
        look = Look(
            self._updates,
            tuple(one or () for one in _prints(parameters)),
            tuple(_prints([None if one is None else one.grad for one in parameters])),
            rates,
        )
        (self._first if len(self._first) < _KEPT_FIRST else self._last).append(look)

    def replica(self, model: str, names: Sequence[str], built: Location | None) -> Replica:
        looks = (*self._first, *self._last)
        return Replica(model, self._rank, self._ranks, tuple(names), looks, built, self.stepped, self._number)


def rates_of(optimizer: torch.optim.Optimizer) -> tuple[float, ...]:
    return tuple(float(group.get("lr") or 0.0) for group in optimizer.param_groups)


def must_stay_equal(wrapper: DistributedDataParallel) -> bool:
    """False where the user chose to let copies drift apart, or may have, and on a single rank."""
    group = getattr(wrapper, "process_group", None)
    return (
        group is not None
        and group.size() > 1
        and not any(_may_diverge(hook) for hook, _ in wrapper._comm_hooks)
    )


def _may_diverge(hook: Any) -> bool:
    home = str(getattr(hook, "__module__", ""))
    return not home.startswith(_KEEP_COPIES_EQUAL) or "sgd" in str(getattr(hook, "__name__", "")).lower()


@torch.no_grad()
def _prints(tensors: list[torch.Tensor | None]) -> list[Print | None]:
    plain = [meter.local(one) for one in tensors if one is not None and _comparable(one)]
    rows = [
        torch.cat([norm.reshape(1).double(), _values(one)])
        for one, norm in zip(plain, meter.norms(plain), strict=True)
    ]
    numbers = iter(torch.cat(rows).tolist() if rows else ())
    lengths = iter([len(row) for row in rows])
    return [
        tuple(next(numbers) for _ in range(next(lengths))) if one is not None and _comparable(one) else None
        for one in tensors
    ]


def _comparable(tensor: torch.Tensor) -> bool:
    return readable(tensor) and tensor.is_floating_point() and tensor.numel() > 0


def _values(tensor: torch.Tensor) -> torch.Tensor:
    """A few values, evenly spread; none of a tensor that would have to be copied for that."""
    if not tensor.is_contiguous():
        return tensor.new_empty(0, dtype=torch.float64)
    flat = tensor.detach().view(-1)
    return flat[:: max(1, flat.numel() // _VALUES)][:_VALUES].double()
