"""The AMP loss scaler."""

from __future__ import annotations

from typing import Any

import torch
from torch.amp.grad_scaler import GradScaler, OptState

from gradclinic.facts import ActorKind, EventKind
from gradclinic.runtime import graph
from gradclinic.runtime.scene import Scene, remember_recent

SCALER_STEP = "scaler step"


def install(scene: Scene) -> None:
    """A disabled scaler does nothing, so it is no actor and makes no events."""
    from gradclinic.runtime.observers.optimizers import step_taken

    recorder = scene.recorder

    def scaler_id(scaler: GradScaler) -> str | None:
        return scene.introduce(scaler, ActorKind.SCALER) if scaler.is_enabled() else None

    def built(_: object, scaler: GradScaler, *args: Any, **kwargs: Any) -> None:
        scaler_id(scaler)

    def scaled(result: Any, scaler: GradScaler, *args: Any, **kwargs: Any) -> None:
        actor = scaler_id(scaler)
        if actor is None:
            return
        for tensor in [result] if isinstance(result, torch.Tensor) else result:
            if isinstance(tensor, torch.Tensor) and tensor.grad_fn is not None:
                remember_recent(scene.scaled_losses, graph.key_of(tensor.grad_fn), actor)

    def before_unscale(scaler: GradScaler, optimizer: torch.optim.Optimizer) -> None:
        actor = scaler_id(scaler)
        if actor is None or recorder.within(SCALER_STEP):
            return
        scene.catch_up()
        refused: dict[str, Any] = {"refused": True} if _has_stepped(scaler, optimizer) else {}
        recorder.emit(EventKind.UNSCALE, actor, _concerned(scene, optimizer), **refused)

    def after_unscale(_: object, scaler: GradScaler, optimizer: torch.optim.Optimizer) -> None:
        scene.settle(EventKind.UNSCALE)

    def before_step(scaler: GradScaler, optimizer: torch.optim.Optimizer, *args: Any, **kwargs: Any) -> None:
        scene.catch_up()
        actor = scaler_id(scaler)
        if actor is not None and _has_stepped(scaler, optimizer):
            step_taken(scene, optimizer, scaler=actor, refused=True)

    def after_step(
        _: object, scaler: GradScaler, optimizer: torch.optim.Optimizer, *args: Any, **kwargs: Any
    ) -> None:
        actor = scaler_id(scaler)
        if actor is None:
            step_taken(scene, optimizer)
        else:
            step_taken(scene, optimizer, scaler=actor, skipped=_found_inf(scaler, optimizer))

    def updated(_: object, scaler: GradScaler, *args: Any, **kwargs: Any) -> None:
        actor = scaler_id(scaler)
        if actor is not None:
            recorder.emit(EventKind.SCALER_UPDATE, actor)

    scene.wrap(GradScaler, "__init__", scope="scaler build", after=built)
    scene.wrap(GradScaler, "scale", scope="scale", after=scaled)
    scene.wrap(GradScaler, "unscale_", scope="unscale", before=before_unscale, after=after_unscale)
    scene.wrap(GradScaler, "step", scope=SCALER_STEP, before=before_step, after=after_step)
    scene.wrap(GradScaler, "update", scope="scaler update", after=updated)


def _concerned(scene: Scene, optimizer: torch.optim.Optimizer) -> frozenset[str]:
    actor = scene.optimizer(optimizer)
    return frozenset() if actor is None else frozenset({actor})


def _has_stepped(scaler: GradScaler, optimizer: torch.optim.Optimizer) -> bool:
    """Since the last update of the scale: torch refuses to go on."""
    return scaler._per_optimizer_states[id(optimizer)]["stage"] is OptState.STEPPED


def _found_inf(scaler: GradScaler, optimizer: torch.optim.Optimizer) -> bool:
    state = scaler._per_optimizer_states[id(optimizer)]
    return any(bool(found) for found in state["found_inf_per_device"].values())
