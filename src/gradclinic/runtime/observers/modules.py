"""Modules: calls from the user's code, and train and eval mode."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import nn
from torch.nn.modules.loss import _Loss

from gradclinic.facts import ActorKind, EventKind
from gradclinic.runtime.names import callee_name, receiver_name
from gradclinic.runtime.precision import autocast_precision
from gradclinic.runtime.scene import Scene


def install(scene: Scene) -> None:
    recorder = scene.recorder
    inputs: dict[str, tuple[weakref.ref[torch.Tensor], int]] = {}

    def model(module: nn.Module, name: str | None) -> str | None:
        if recorder.full:
            return scene.actors.id_of(module)
        return scene.actors.adopt(module, ActorKind.MODEL, name or type(module).__name__)

    def called(module: nn.Module, *args: Any, **kwargs: Any) -> None:
        if recorder.full or isinstance(module, _Loss):
            return
        actor = scene.actors.id_of(module) or model(module, callee_name(recorder.places.callers()))
        if actor is None:
            return
        fresh = is_fresh(actor, (*args, *kwargs.values()))
        wrapper = scene.replicas.bypassed(module)
        if wrapper is None:
            scene.replicas.note_sharded(module, actor)
            recorder.emit(EventKind.FORWARD, actor, fresh=fresh, **_precision())
        else:
            concerned = scene.actors.holding(scene.replicas.parameters(wrapper))
            recorder.emit(
                EventKind.FORWARD, actor, concerned, fresh=fresh, bypasses=wrapper, **_precision()
            )

    def is_fresh(actor: str, given: Iterable[Any]) -> bool | None:
        data = next(_tensors(given), None)
        if data is None:
            return None
        before = inputs.get(actor)
        inputs[actor] = (weakref.ref(data), _version(data))
        return before is None or before[0]() is not data or before[1] != _version(data)

    def mode_set(_: object, module: nn.Module, mode: bool = True) -> None:
        name = receiver_name(recorder.places.callers(), "train" if mode else "eval")
        recorder.emit(EventKind.MODE, scene.actors.id_of(module) or model(module, name), training=bool(mode))

    scene.forwards.before.append(called)
    scene.wrap(nn.Module, "train", scope="mode", after=mode_set)


def _precision() -> dict[str, Any]:
    precision = autocast_precision()
    return {"precision": precision} if precision else {}


def _tensors(values: Iterable[Any]) -> Iterator[torch.Tensor]:
    """Tensors among the arguments, one container deep."""
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from (one for one in value if isinstance(one, torch.Tensor))
        elif isinstance(value, dict):
            yield from (one for one in value.values() if isinstance(one, torch.Tensor))


def _version(tensor: torch.Tensor) -> int:
    return 0 if tensor.is_inference() else tensor._version
