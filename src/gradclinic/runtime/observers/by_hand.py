"""Copies of a model on all ranks that the program keeps equal itself, or forgets to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
import torch.distributed as dist
from torch.optim.optimizer import register_optimizer_step_pre_hook

from gradclinic.facts import Replica
from gradclinic.runtime.actors import parameters_of
from gradclinic.runtime.fingerprints import Fingerprints, rates_of
from gradclinic.runtime.scene import Scene
from gradclinic.runtime.values import readable

_COLLECTIVES = (
    "broadcast",
    "all_reduce",
    "reduce",
    "all_gather",
    "all_gather_into_tensor",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "all_to_all",
    "all_to_all_single",
    "send",
    "isend",
    "recv",
    "irecv",
)
_A_METRIC = 16
"""Elements that are no weights, gradients or activations when ranks exchange them."""
_MOST = 100_000
_NUMBERS_FROM = 1000
"""Replicas of wrappers are counted from 0."""


class _Copy:
    def __init__(self, prints: Fingerprints, exchanged: bool) -> None:
        self.prints = prints
        self.exchanged = exchanged
        self.given_up = False


def install(scene: Scene) -> None:
    if not dist.is_available():
        return
    recorder = scene.recorder
    copies: dict[str, _Copy] = {}
    passed: dict[int, int] = {}
    """Where what was exchanged since the last update lies, and how many elements it has."""

    def exchange(_: object, *args: Any, **kwargs: Any) -> None:
        for one in (*args, *kwargs.values()):
            if isinstance(one, torch.Tensor) and readable(one) and len(passed) < _MOST:
                passed[one.data_ptr()] = one.numel()

    def before_step(optimizer: torch.optim.Optimizer) -> None:
        actor = scene.optimizer(optimizer)
        if actor is None or scene.replicas.wrappers:
            return
        parameters = list(parameters_of(optimizer))
        gradients = {one.grad.data_ptr() for one in parameters if one.grad is not None and readable(one.grad)}
        mine = copies.get(actor)
        if mine is None:
            if not all(type(one.data) is torch.Tensor and readable(one) for one in parameters):
                return  # in shares on the ranks, or nowhere yet
            weights = {one.data_ptr() for one in parameters}
            exchanged = weights <= passed.keys() or (bool(gradients) and gradients <= passed.keys())
            names = [scene.register.name_of(one) for one in parameters]
            prints = Fingerprints(names, range(dist.get_world_size()), _NUMBERS_FROM + len(copies))
            mine = copies[actor] = _Copy(prints, exchanged)
            prints.optimizer, prints.stepped = actor, recorder.places.here()
        else:
            # Activations, or weights that are averaged every so often: then copies may differ.
            others = passed.keys() - gradients
            mine.given_up |= any(passed[address] > _A_METRIC for address in others)
        passed.clear()
        if not mine.given_up and mine.prints.due():
            mine.prints.take([*parameters], rates_of(optimizer))

    def pre_hook(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        if dist.is_initialized() and not torch.compiler.is_compiling() and dist.get_world_size() > 1:
            recorder.safely(before_step, optimizer)

    def tell() -> Iterator[Replica]:
        for actor, mine in copies.items():
            if not mine.given_up and not scene.replicas.wrappers:
                names = mine.prints.names
                known = scene.actors.known[actor]
                told = mine.prints.replica(names[0].partition(".")[0], names, known.built)
                yield replace(told, by_hand=True, exchanged=mine.exchanged)

    for name in _COLLECTIVES:
        if name in vars(dist):
            scene.wrap(dist, name, scope="collective", after=exchange)
    scene.patches.on_undo(register_optimizer_step_pre_hook(pre_hook).remove)
    scene.facts.append(tell)
