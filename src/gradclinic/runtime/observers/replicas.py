"""Wrappers that keep the copies of a model equal on all ranks."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.optim.optimizer import register_optimizer_step_pre_hook

from gradclinic.facts import ActorKind, Replica
from gradclinic.runtime.actors import parameters_of
from gradclinic.runtime.fingerprints import Fingerprints, must_stay_equal, rates_of
from gradclinic.runtime.names import assigned_name
from gradclinic.runtime.replicas import replica_attributes
from gradclinic.runtime.scene import Scene


def install(scene: Scene) -> None:
    recorder, replicas = scene.recorder, scene.replicas
    prints: dict[str, Fingerprints] = {}
    drifting: set[str] = set()
    wrappers: weakref.WeakKeyDictionary[torch.optim.Optimizer, list[str]] = weakref.WeakKeyDictionary()

    def built(_: object, wrapper: DistributedDataParallel, *args: Any, **kwargs: Any) -> None:
        if recorder.full:
            return
        name = assigned_name(recorder.places.frames()) or "model"
        where, attributes = recorder.places.here(), replica_attributes(wrapper)
        replicas.wrapped(wrapper, scene.actors.adopt(wrapper, ActorKind.MODEL, name, where, attrs=attributes))
        wrappers.clear()

    def forward(wrapper: DistributedDataParallel, *args: Any, **kwargs: Any) -> None:
        replicas.forward(wrapper)

    def held_by(optimizer: torch.optim.Optimizer) -> list[str]:
        known = wrappers.get(optimizer)
        if known is None:
            held = {id(parameter) for parameter in parameters_of(optimizer)}
            known = wrappers[optimizer] = [
                actor
                for wrapper, actor in replicas.wrappers.items()
                if any(id(parameter) in held for parameter in wrapper.parameters())
            ]
        return known

    def before_step(optimizer: torch.optim.Optimizer) -> None:
        concerned = held_by(optimizer)
        for wrapper, actor in list(replicas.wrappers.items()) if concerned else ():
            if actor not in concerned or not must_stay_equal(wrapper):
                drifting.update({actor} & set(concerned))
                continue
            mine = prints.get(actor)
            if mine is None:
                group = dist.get_process_group_ranks(wrapper.process_group)
                mine = prints[actor] = Fingerprints(list(_averaged(wrapper)), group, len(prints))
                mine.optimizer, mine.stepped = scene.optimizer(optimizer), recorder.places.here()
            if mine.optimizer == scene.actors.id_of(optimizer) and mine.due():
                known = _averaged(wrapper)
                mine.take([known.get(name) for name in mine.names], rates_of(optimizer))

    def pre_hook(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        if replicas.wrappers and not torch.compiler.is_compiling():
            recorder.safely(before_step, optimizer)

    def tell() -> Iterator[Replica]:
        for actor, mine in prints.items():
            if actor not in drifting:
                known = scene.actors.known[actor]
                names = [f"{known.name}.module.{parameter}" for parameter in mine.names]
                yield mine.replica(known.name, names, known.built)

    scene.wrap(DistributedDataParallel, "__init__", scope="replica build", after=built)
    scene.wrap(DistributedDataParallel, "forward", scope="replica forward", before=forward)
    scene.patches.on_undo(register_optimizer_step_pre_hook(pre_hook).remove)
    scene.facts.append(tell)


def _averaged(wrapper: DistributedDataParallel) -> dict[str, torch.Tensor]:
    ignored = wrapper.parameters_to_ignore
    return {name: one for name, one in wrapper.module.named_parameters() if name not in ignored}
