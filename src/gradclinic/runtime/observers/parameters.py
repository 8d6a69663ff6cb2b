"""Parameters: what models own, optimizers hold and backward reaches, looked at on a few steps."""

from __future__ import annotations

import weakref
from typing import Any

import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from gradclinic.facts import EventKind
from gradclinic.runtime.copies import note_copies
from gradclinic.runtime.names import builder
from gradclinic.runtime.scene import Scene
from gradclinic.runtime.statistics import meter

EARLY_STEPS = 5
_ROUND = frozenset(lead * 10**power for power in range(1, 8) for lead in (1, 2, 5))
_LARGEST_COPY = 1_000_000


def install(scene: Scene) -> None:
    recorder, actors = scene.recorder, scene.actors
    register = scene.register
    copies: dict[int, tuple[weakref.ref[torch.Tensor], torch.Tensor]] = {}
    earlier: dict[str, tuple[str, ...]] = {}
    """For a step under way, the optimizers that had stepped since the last backward when it began."""

    def built(_: object, module: nn.Module, *args: Any, **kwargs: Any) -> None:
        frame = builder(recorder.places.frames())
        if frame is not None:
            register.built[module] = recorder.places.of(frame)

    def ran(module: nn.Module) -> None:
        if torch.is_grad_enabled():
            register.ran[module] = register.ran.get(module, 0) + 1

    def loaded(result: object, module: nn.Module, *args: Any, **kwargs: Any) -> None:
        missing = {key.rpartition(".")[0] for key in getattr(result, "missing_keys", ())}
        for path, part in module.named_modules():
            if path not in missing:
                register.loaded[part] = True

    def after_backward(*args: Any, **kwargs: Any) -> None:
        register.stepped.clear()
        if register.pending:
            register.note_gradients()

    def before_step(optimizer: torch.optim.Optimizer) -> None:
        actor = actors.id_of(optimizer)
        if actor is None:
            return
        count = register.steps[actor] = register.steps.get(actor, 0) + 1
        if count > EARLY_STEPS and count not in _ROUND:
            return
        register.look()
        register.note_abandoned(actor)
        register.describe(actor, optimizer)
        if count == 1:
            note_copies(register.entries.values())
        earlier[actor] = tuple(register.stepped)
        register.look_for_zeros()
        copies.clear()
        for entry in register.entries.values():
            parameter = entry.parameter()
            if (
                actor in entry.holders
                and parameter is not None
                and not parameter.requires_grad
                and parameter.grad is not None
                and parameter.numel() <= _LARGEST_COPY
                and len(copies) < EARLY_STEPS
            ):
                copies[id(parameter)] = (weakref.ref(parameter), meter.local(parameter).detach().clone())

    def after_step(optimizer: torch.optim.Optimizer) -> None:
        actor = actors.id_of(optimizer)
        if actor is not None:
            # Only now, for a closure runs its backward within the step.
            register.note_second_step(actor, earlier.pop(actor, ()))
            register.stepped.append(actor)
        for address, (reference, before) in copies.items():
            parameter = reference()
            if parameter is not None and not torch.equal(meter.local(parameter).detach(), before):
                register.entries[address].moved_frozen = True
        copies.clear()

    def pre_hook(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        if not torch.compiler.is_compiling():
            recorder.safely(before_step, optimizer)

    def post_hook(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        if not torch.compiler.is_compiling():
            recorder.safely(after_step, optimizer)
            if recorder.steps > EARLY_STEPS:
                scene.forwards.of_any.clear()

    def ended(error: BaseException) -> None:
        """An error may come before the first step: look now, while the objects exist."""
        register.look()
        for actor, optimizer in actors.optimizers():
            register.steps.setdefault(actor, 0)
            register.describe(actor, optimizer)

    def tell() -> list[object]:
        tape = recorder.tape(complete=True)
        register.hand_written = EventKind.WEIGHT_WRITE in tape.kinds
        return [register.census(complete=tape.complete)] if register.steps else []

    scene.wrap(nn.Module, "__init__", scope="module build", after=built)
    scene.wrap(nn.Module, "load_state_dict", scope="load into module", after=loaded)
    scene.wrap(torch.autograd, "backward", scope="gradients arrive", after=after_backward)
    scene.forwards.of_any.append(ran)
    scene.patches.on_undo(register_optimizer_step_pre_hook(pre_hook).remove)
    scene.patches.on_undo(register_optimizer_step_post_hook(post_hook).remove)
    scene.endings.append(ended)
    scene.facts.append(tell)
