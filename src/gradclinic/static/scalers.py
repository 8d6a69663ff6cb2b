"""Methods of gradient scalers, and what becomes of them on the paths where a scaler is switched off."""

from __future__ import annotations

import ast
from dataclasses import replace

from gradclinic.facts import BROUGHT, ActorKind, EventKind
from gradclinic.static.callers import called_with_a_scale
from gradclinic.static.held import optimizers_in
from gradclinic.static.roles import actor
from gradclinic.static.scales import never_unscaled
from gradclinic.static.step_hooks import AFTER_STEP, BEFORE_STEP, run_hooks
from gradclinic.static.supposing import settled
from gradclinic.static.values import NONE, NOTHING, ActorRef, Seq, Tensor, Unknown, Value
from gradclinic.static.walk import Arguments, Walk


def call_scaler(walk: Walk, base: ActorRef, attr: str, args: Arguments, node: ast.Call) -> Value | None:
    if attr == "scale":
        loss = args.get(0, "outputs")
        if isinstance(loss, Seq):
            return Seq([scaled_by(walk, base, item) for item in loss.items])
        return scaled_by(walk, base, loss)
    if attr in ("step", "unscale_"):
        target = args.get(0, "optimizer")
        optimizers = optimizers_in([target]) if target is not None else NOTHING
        if not optimizers and isinstance(target, Unknown):
            optimizers = frozenset({actor(walk, ActorKind.OPTIMIZER, target.path).id})
        through: dict[str, object] = {"scaler": base.id} if _enabled(walk, base) else {}
        if through and attr == "step" and _comes_with_a_scale(walk, base):
            through[BROUGHT] = True
        for optimizer in sorted(optimizers):
            mine = frozenset({optimizer})
            if attr == "step":
                ref = ActorRef(optimizer, ActorKind.OPTIMIZER)
                if walk.hooks:  # which see what the scaler has unscaled by then, if nobody else has
                    walk.emit(EventKind.UNSCALE, node, optimizers=mine)
                run_hooks(walk, BEFORE_STEP, mine, node, ref)
                walk.emit(EventKind.STEP, node, actor=optimizer, optimizers=mine, attrs=through)
                run_hooks(walk, AFTER_STEP, mine, node, ref)
            elif through:
                walk.emit(EventKind.UNSCALE, node, actor=base.id, optimizers=mine, attrs=through)
        return NONE
    if attr == "update" and _enabled(walk, base):
        walk.emit(EventKind.SCALER_UPDATE, node, actor=base.id)
        return NONE
    if attr == "is_enabled":
        return _switch(walk, base.id)
    return Unknown(f"{base.id}.{attr}()")


def _switch(walk: Walk, scaler: str) -> Value:
    """What a scaler is switched on by. One that nothing was said of asks for a device that is there."""
    return walk.switches.get(scaler) or Unknown(f"{scaler}.is_enabled()")


def switch_off(walk: Walk) -> None:
    """Take what a scaler does nothing about off the tape of a path that has said it is off.

    `GradScaler(enabled=args.amp)` scales nothing where `if args.amp:` goes the other way, be that asked
    before the scaler is used or after.
    """
    for id, scaler in list(walk.recorder.actors.items()):
        if scaler.kind is ActorKind.SCALER and settled(walk, _switch(walk, id)) is False:
            walk.recorder.actors[id] = replace(scaler, attrs={**scaler.attrs, "enabled": False})
            walk.recorder.switch_off(id)


def note_steps(walk: Walk) -> None:
    """Say of scalers that something in the file steps through them, if not on this path."""
    for id, scaler in list(walk.recorder.actors.items()):
        name = scaler.name.rpartition(".")[2]
        if scaler.kind is ActorKind.SCALER and "step" in walk.survey.methods_of.get(name, ()):
            walk.recorder.actors[id] = replace(scaler, attrs={**scaler.attrs, "steps": True})


def _comes_with_a_scale(walk: Walk, scaler: ActorRef) -> bool:
    """Whether a function that is given a scaler clips and steps on what others have computed and scaled."""
    kinds = {draft.kind for draft in walk.recorder.drafts}
    if EventKind.CLIP not in kinds or EventKind.BACKWARD in kinds:
        return False
    if walk.recorder.known(scaler.id).built is not None or walk.frame.module.path:
        return False
    return called_with_a_scale(walk.path) and never_unscaled(walk.path)


def _enabled(walk: Walk, scaler: ActorRef) -> bool:
    return walk.recorder.known(scaler.id).attrs.get("enabled", True) is not False


def scaled_by(walk: Walk, base: ActorRef, loss: Value | None) -> Tensor:
    tensor = loss if isinstance(loss, Tensor) else Tensor(models=None, scaled=None, loss=True)
    return Tensor(tensor.models, tensor.scaled, base.id if _enabled(walk, base) else None, loss=True)
