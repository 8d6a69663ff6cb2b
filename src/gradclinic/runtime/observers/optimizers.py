"""Optimizers: construction, clearing, stepping."""

from __future__ import annotations

from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from gradclinic.facts import ActorKind, EventKind
from gradclinic.runtime.actors import parameters_of
from gradclinic.runtime.observers.scaling import SCALER_STEP
from gradclinic.runtime.scene import Scene


def install(scene: Scene) -> None:
    recorder, actors, under_way = scene.recorder, scene.actors, scene.steps_under_way

    def built(_: object, optimizer: torch.optim.Optimizer, *args: Any, **kwargs: Any) -> None:
        scene.introduce(optimizer, ActorKind.OPTIMIZER, attrs=_settings(optimizer))
        scene.settle(EventKind.BUILD)

    def before_clearing(*args: Any, **kwargs: Any) -> None:
        scene.catch_up()

    def cleared(owner: torch.optim.Optimizer | torch.nn.Module, actor: str | None) -> None:
        if recorder.full:
            recorder.emit(EventKind.ZERO_GRAD, actor)
            return
        owned = owner.parameters() if isinstance(owner, torch.nn.Module) else parameters_of(owner)
        parameters = list(owned)
        concerned = actors.within(parameters)
        recorder.emit(EventKind.ZERO_GRAD, actor, concerned)
        partly = actors.holding(parameters) - concerned
        if partly:
            # Some gradients are gone and some stay: neither a clear nor none, so nothing is concluded.
            recorder.emit(EventKind.OPAQUE, optimizers=partly)
        scene.settle(EventKind.ZERO_GRAD, concerned)

    def optimizer_cleared(_: object, optimizer: torch.optim.Optimizer, *args: Any, **kwargs: Any) -> None:
        cleared(optimizer, scene.optimizer(optimizer))

    def module_cleared(_: object, module: torch.nn.Module, *args: Any, **kwargs: Any) -> None:
        cleared(module, None)

    def before_step(optimizer: torch.optim.Optimizer) -> None:
        scene.optimizer(optimizer)
        if not recorder.within(SCALER_STEP) and not under_way:
            scene.catch_up()
        under_way.append(id(optimizer))

    def after_step(optimizer: torch.optim.Optimizer) -> None:
        if id(optimizer) in under_way:
            del under_way[under_way.index(id(optimizer)) :]
        if under_way or recorder.within(SCALER_STEP):
            return
        step_taken(scene, optimizer)

    def pre_hook(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        if not torch.compiler.is_compiling():
            recorder.safely(before_step, optimizer)

    def post_hook(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        if torch.compiler.is_compiling():
            return
        recorder.safely(after_step, optimizer)
        if not under_way and not recorder.within(SCALER_STEP):
            recorder.stop_if_enough()

    scene.wrap(torch.optim.Optimizer, "__init__", scope="optimizer build", after=built)
    scene.wrap(
        torch.optim.Optimizer, "zero_grad", scope="zero_grad", before=before_clearing, after=optimizer_cleared
    )
    scene.wrap(torch.nn.Module, "zero_grad", scope="zero_grad", before=before_clearing, after=module_cleared)
    scene.patches.on_undo(register_optimizer_step_pre_hook(pre_hook).remove)
    scene.patches.on_undo(register_optimizer_step_post_hook(post_hook).remove)


def _settings(optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    groups = optimizer.param_groups
    if any(group.get("decoupled_weight_decay") for group in groups):
        return {}
    decays = [group["weight_decay"] for group in groups if "weight_decay" in group]
    return {"weight_decay": max(map(float, decays))} if decays else {}


def step_taken(scene: Scene, optimizer: torch.optim.Optimizer, **attrs: Any) -> None:
    """An update of all optimizers over the same parameters: one may wrap or relieve another."""
    actor = scene.optimizer(optimizer)
    if scene.recorder.full:
        scene.recorder.emit(EventKind.STEP, actor)
        return
    concerned = scene.actors.within(parameters_of(optimizer))
    if actor is not None:
        concerned |= {actor}
    scene.recorder.emit(EventKind.STEP, actor, concerned, **attrs)
    scene.settle(EventKind.STEP, concerned)
