"""Models that are copies of each other on all ranks, or lie in shares on them.

Reads what the wrappers of torch keep on this rank and calls nothing that talks to another.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Collection, Iterable, Iterator, MutableMapping
from typing import Any

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.weak import WeakIdKeyDictionary

from gradclinic.runtime.actors import Actors

_FULLY_SHARD = "torch.distributed.fsdp._fully_shard"
"""Loaded only by programs that shard."""


class Replicas:
    def __init__(self, actors: Actors) -> None:
        self._actors = actors
        self.wrappers: weakref.WeakKeyDictionary[DistributedDataParallel, str] = weakref.WeakKeyDictionary()
        self._inner: MutableMapping[nn.Module, str] = WeakIdKeyDictionary()
        self._armed: set[str] = set()
        """Wrappers whose latest forward makes the next backward average gradients over the ranks."""
        self._sharded: MutableMapping[nn.Module, str] = WeakIdKeyDictionary()

    def wrapped(self, wrapper: DistributedDataParallel, actor: str) -> None:
        self.wrappers[wrapper] = actor
        for part in wrapper.module.modules():
            self._inner[part] = actor

    def forward(self, wrapper: DistributedDataParallel) -> None:
        """The context around the forward decides; around the backward it has no effect."""
        actor = self.wrappers.get(wrapper)
        if actor is not None and torch.is_grad_enabled() and wrapper.require_backward_grad_sync:
            self._armed.add(actor)

    def bypassed(self, module: nn.Module) -> str | None:
        """The wrapper that a training forward through `module` goes around."""
        if not self._inner or not module.training or not torch.is_grad_enabled():
            return None
        return self._inner.get(module)

    def parameters(self, actor: str) -> list[torch.Tensor]:
        return [p for wrapper, id in self.wrappers.items() if id == actor for p in wrapper.parameters()]

    def note_sharded(self, module: nn.Module, actor: str) -> None:
        """A model that was called may be sharded."""
        if _FULLY_SHARD in sys.modules and module not in self._sharded:
            groups = list(_groups(module))
            if groups:
                self._sharded[module] = actor
                self._actors.describe(actor, {"ranks": _ranks(groups), **_traffic(module, sharded=True)})

    def reducing(self, leaves: Collection[torch.Tensor] | None) -> str | None:
        """The model whose gradients the backward under way makes ranks exchange."""
        reached = None if leaves is None else {id(leaf) for leaf in leaves}
        for wrapper, actor in self.wrappers.items():
            if actor in self._armed and _meet(wrapper.parameters(), reached):
                self._armed.discard(actor)
                return actor
        for module, actor in self._sharded.items():
            groups = list(_groups(module))
            if groups and all(group.reduce_grads for group in groups) and _meet(_whole(groups), reached):
                return actor
        return None

    def held(self, leaves: Iterable[torch.Tensor]) -> list[torch.Tensor]:
        """Parameters as optimizers hold them: for the whole one that a graph ends in, this rank's share."""
        if not self._sharded:
            return list(leaves)
        shares = {
            id(whole): one.sharded_param
            for module in self._sharded
            for group in _groups(module)
            for one in group.fsdp_params
            if (whole := getattr(one, "_unsharded_param", None)) is not None
        }
        return [shares.get(id(leaf), leaf) for leaf in leaves]


def replica_attributes(wrapper: DistributedDataParallel) -> dict[str, Any]:
    group = getattr(wrapper, "process_group", None)
    return {"ranks": 1 if group is None else group.size(), **_traffic(wrapper, sharded=False)}


def _traffic(module: nn.Module, *, sharded: bool) -> dict[str, Any]:
    size = sum(p.numel() * p.element_size() for p in module.parameters() if p.requires_grad)
    return {"gradient_bytes": size, "sharded": sharded}


def _groups(module: nn.Module) -> Iterator[Any]:
    for part in module.modules():
        state = getattr(part, "_get_fsdp_state", None)
        if state is not None:
            yield from getattr(state(), "_fsdp_param_groups", ())


def _whole(groups: list[Any]) -> list[torch.Tensor]:
    """The parameters a graph ends in: gathered from all ranks, not the shares that optimizers hold."""
    gathered = (getattr(one, "_unsharded_param", None) for group in groups for one in group.fsdp_params)
    return [parameter for parameter in gathered if parameter is not None]


def _ranks(groups: list[Any]) -> int:
    size: int = groups[0].mesh_info.mesh.size()
    return size


def _meet(parameters: Iterable[torch.Tensor], reached: set[int] | None) -> bool:
    return reached is None or any(id(parameter) in reached for parameter in parameters)
