"""The processes that train one model together. Alone, every question here has a free answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from gradclinic.train.errors import RanksDivergedError
from gradclinic.train.layout import Layout

if TYPE_CHECKING:
    from torch.distributed.fsdp import FSDPModule


@dataclass
class Traffic:
    """Bytes of gradient one rank handed to the reduction, and those it did not have to."""

    reduced: int = 0
    deferred: int = 0

    def __str__(self) -> str:
        whole = self.reduced + self.deferred
        share = 100 * self.deferred / whole if whole else 0.0
        return f"{self.reduced / 1e6:.1f} MB reduced, {self.deferred / 1e6:.1f} MB saved ({share:.0f} %)"


class Ranks:
    """How this process agrees with the others, and when gradients are reduced."""

    def __init__(self, models: Sequence[nn.Module], group: dist.ProcessGroup | None = None) -> None:
        self.replicas: list[DistributedDataParallel] = []
        self.shards: list[FSDPModule] = []
        self.group = group
        self.count, self.number = 1, 0
        self.traffic = Traffic()
        self.synchronising = True
        if not (dist.is_available() and dist.is_initialized()):
            return
        from torch.distributed.fsdp import FSDPModule

        modules = [module for model in models for module in model.modules()]
        self.replicas = [module for module in modules if isinstance(module, DistributedDataParallel)]
        self.shards = [module for module in modules if isinstance(module, FSDPModule)]
        if self.replicas and group is None:
            self.group = self.replicas[0].process_group
        if self.replicas or self.shards or group is not None:
            self.count, self.number = dist.get_world_size(self.group), dist.get_rank(self.group)
        self._device = next((parameter.device for model in models for parameter in model.parameters()), None)

    @property
    def alone(self) -> bool:
        return self.count == 1

    def synchronise(self, wanted: bool) -> None:
        """Whether the next backward reduces. DDP looks at this in its forward, FSDP2 in its backward."""
        if self.alone or wanted == self.synchronising:
            return
        self.synchronising = wanted
        for replica in self.replicas:
            replica.require_backward_grad_sync = wanted
        for shard in self.shards:
            shard.set_requires_gradient_sync(wanted, recurse=False)

    def count_backward(self, layout: Layout) -> None:
        if self.alone:
            return
        size = sum(p.numel() * p.element_size() for p in layout.parameters if p.requires_grad)
        if self.synchronising:
            self.traffic.reduced += size
        else:
            self.traffic.deferred += size

    def reduce_now(self, layout: Layout) -> None:
        """Average gradients that DDP was told to keep local: the window ended earlier than planned."""
        for parameter in layout.parameters:
            if parameter.requires_grad:
                if parameter.grad is None:
                    parameter.grad = torch.zeros_like(parameter)
                dist.all_reduce(parameter.grad, group=self.group)
                parameter.grad.div_(self.count)
                self.traffic.reduced += parameter.grad.numel() * parameter.grad.element_size()

    def total(self, values: list[float | Tensor]) -> list[float]:
        """The sum of each value over the ranks, in one message."""
        if self.alone:
            return [float(value) for value in values]
        message = torch.tensor([float(value) for value in values], dtype=torch.float64, device=self._device)
        dist.all_reduce(message, group=self.group)
        summed: list[float] = message.tolist()
        return summed

    def largest(self, value: float) -> float:
        if self.alone:
            return value
        message = torch.tensor([value], dtype=torch.float64, device=self._device)
        dist.all_reduce(message, dist.ReduceOp.MAX, group=self.group)
        return float(message)

    def everyones(self, value: Any) -> list[Any]:
        """One value of every rank, in rank order."""
        if self.alone:
            return [value]
        gathered: list[Any] = [None] * self.count
        dist.all_gather_object(gathered, value, group=self.group)
        return gathered

    def assert_equal(self, layout: Layout) -> None:
        """Parameters are the same bits on every rank; sharded ones have no second copy to compare."""
        if self.alone:
            return
        compared = [
            (name, parameter.detach())
            for name, parameter in zip(layout.names, layout.parameters, strict=True)
            if not hasattr(parameter, "full_tensor")
        ]
        if not compared:
            return
        prints = torch.stack([_fingerprint(tensor) for _, tensor in compared])
        lowest, highest = prints.clone(), prints.clone()
        dist.all_reduce(lowest, dist.ReduceOp.MIN, group=self.group)
        dist.all_reduce(highest, dist.ReduceOp.MAX, group=self.group)
        differing = (lowest != highest).nonzero().flatten().tolist()
        if differing:
            raise RanksDivergedError(
                f"{len(differing)} of {len(compared)} parameters differ between ranks, the first is "
                f"{compared[differing[0]][0]!r}; they must be equal after every update. Look for weights "
                "changed on one rank only, a forward through `.module`, or different seeds at construction"
            )


def _fingerprint(tensor: Tensor) -> Tensor:
    """A number that changes with any bit of the tensor and with the place of its elements."""
    width = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[tensor.element_size()]
    bits = tensor.contiguous().view(width).flatten().to(torch.int64)
    places = torch.arange(1, bits.numel() + 1, device=bits.device)
    return (bits * places).sum()
