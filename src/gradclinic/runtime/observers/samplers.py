"""Samplers that give each rank its share of a shuffled order."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.utils.data.distributed import DistributedSampler

from gradclinic.facts import Location, ShardedShuffle
from gradclinic.runtime.scene import Scene

_MOST_PASSES = 64


@dataclass
class _Passes:
    where: Location
    epochs: list[int] = field(default_factory=list)
    """Of passes whose batches updates were made from."""
    epoch: int = 0
    """Of the pass under way,"""
    trains: bool = False
    """and whether an update came of it."""


def install(scene: Scene) -> None:
    recorder = scene.recorder
    passes: list[_Passes] = []
    of: weakref.WeakKeyDictionary[Any, _Passes] = weakref.WeakKeyDictionary()

    def ordered(sampler: DistributedSampler[Any]) -> None:
        if not sampler.shuffle:
            return
        known = of.get(sampler)
        if known is None:
            known = of[sampler] = _Passes(recorder.places.here())
            passes.append(known)
        known.epoch, known.trains = sampler.epoch, False

    def stepped() -> None:
        sampler = scene.sampler()
        known = of.get(sampler) if sampler is not None else None
        if known is not None and not known.trains and len(known.epochs) < _MOST_PASSES:
            known.trains = True
            known.epochs.append(known.epoch)

    def post_hook(*_: object) -> None:
        if of and not torch.compiler.is_compiling():
            recorder.safely(stepped)

    def tell() -> Iterator[ShardedShuffle]:
        return (ShardedShuffle(one.where, tuple(one.epochs)) for one in passes if one.epochs)

    scene.wrap(DistributedSampler, "__iter__", scope="sampler", before=ordered)
    scene.patches.on_undo(register_optimizer_step_post_hook(post_hook).remove)
    scene.facts.append(tell)
