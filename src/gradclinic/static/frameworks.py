"""Accelerate, Fabric and DeepSpeed, as they behave: who divides, who skips, who steps by itself."""

from __future__ import annotations

import ast

from gradclinic.facts import ActorKind, EventKind
from gradclinic.static import words
from gradclinic.static.conditions import OF_GRADIENTS
from gradclinic.static.gradients import clip
from gradclinic.static.held import models_in, optimizers_in
from gradclinic.static.opaque import open_tape
from gradclinic.static.supposing import settled
from gradclinic.static.values import (
    NONE,
    Accelerator,
    ActorRef,
    Model,
    Seq,
    Stream,
    Tensor,
    Unknown,
    Value,
)  # fmt: skip
from gradclinic.static.walk import Arguments, Walk


def acts_now(walk: Walk, optimizer: ActorRef) -> bool:
    """A prepared optimizer steps and clears only at the end of a window."""
    return not optimizer.prepared or walk.synced


def call_accelerator(
    walk: Walk, base: Accelerator, attr: str, args: Arguments, node: ast.Call
) -> Value | None:
    if attr == "backward":
        _backward(walk, base, args, node)
        return NONE
    if attr in ("prepare", "setup", "setup_module", "setup_optimizers", "prepare_model", "prepare_optimizer",
                "prepare_scheduler", "prepare_data_loader", "setup_dataloaders", "setup_model"):  # fmt: skip
        return prepared(args)
    if attr in words.CLIPS:
        clip(walk, optimizers_in(args.all()), models_in(args.all()), node)
        return Unknown(OF_GRADIENTS)
    if attr == "unwrap_model" and args.positional and isinstance(args.positional[0], Model):
        return args.positional[0].inside(f"{attr}({args.positional[0].name})")
    if attr in ("unwrap_model", "gather", "reduce", "gather_for_metrics"):
        return args.positional[0] if args.positional else NONE
    if attr == "skip_first_batches":
        return args.positional[0] if args.positional else NONE
    if attr == "unscale_gradients":
        return NONE
    return Unknown(f"{base.framework}.{attr}()")


def _backward(walk: Walk, base: Accelerator, args: Arguments, node: ast.Call) -> None:
    loss = args.get(0, "loss")
    tensor = loss if isinstance(loss, Tensor) else Tensor(models=None, scaled=None)
    scaled = tensor.scaled
    if base.framework == "accelerate" and not scaled:
        known = base.window.value if base.window is not None and not base.window.invented else None
        if known == 1:
            # Accelerators share their window: another one may have opened it.
            scaled = None if walk.in_window else tensor.scaled
        else:
            scaled = None if base.window is None and not walk.in_window else True
    models = tensor.models or None
    attrs: dict[str, object] = {"scaled": scaled}
    if walk.autocast:
        attrs["autocast"] = settled(walk, walk.autocast[-1][1]) is not False
    walk.emit(EventKind.BACKWARD, node, models=models, attrs=attrs)


def prepared(args: Arguments) -> Value:
    """The same objects, marked: a prepared schedule skips with its optimizer."""
    for value in args.all():
        if isinstance(value, ActorRef):
            value.prepared = True
    values = [value if not isinstance(value, Unknown) else Stream(value.path) for value in args.positional]
    return values[0] if len(values) == 1 and not args.partial else Seq(values)


def enter_accumulate(walk: Walk, base: Accelerator) -> None:
    """One micro-batch of `with accelerator.accumulate(model)`."""
    walk.in_window = True
    walk.micro_batch += 1
    window = base.window.value if base.window is not None and base.window.value is not None else walk.window
    if window > 1 and base.window is not None and not base.window.invented and window > 8:
        window = walk.window
    walk.synced = walk.micro_batch % window == 0 or walk.last_batch
    if walk.last_batch:
        walk.micro_batch = 0


def leave_accumulate(walk: Walk) -> None:
    walk.in_window = False


def call_engine(walk: Walk, engine: Model, attr: str, args: Arguments, node: ast.Call) -> Value:
    """A DeepSpeed engine scales the loss, and its step updates and clears by itself."""
    id = f"{ActorKind.OPTIMIZER}:{engine.name}"
    if "backward" not in walk.survey.methods_of.get(engine.name.rsplit(".", 1)[-1], ()):
        if attr == "step" and not words.AVERAGE.search(engine.name):
            open_tape(walk, node, models=engine.keys)
        return Unknown(f"{engine.name}.{attr}()")
    if id not in walk.recorder.actors:
        walk.recorder.actor(ActorKind.OPTIMIZER, engine.name, type="engine", of=engine.keys)
    if attr == "backward":
        walk.emit(EventKind.BACKWARD, node, models=engine.keys, attrs={"scaled": True})
    else:
        mine = frozenset({id})
        walk.emit(EventKind.STEP, node, actor=id, optimizers=mine)
        walk.emit(EventKind.ZERO_GRAD, node, actor=id, optimizers=mine)
    return NONE


def initialize_engine(walk: Walk, args: Arguments) -> Value:
    """`engine, optimizer, loader, schedule = deepspeed.initialize(model=..., ...)`."""
    model = args.get(1, "model")
    engine = model if isinstance(model, Model) else Model(frozenset({"engine"}), walk.assigning or "engine")
    optimizer = args.get(2, "optimizer") or Unknown("engine.optimizer")
    return Seq([engine, optimizer, Stream("engine.loader"), Unknown("engine.schedule")])
