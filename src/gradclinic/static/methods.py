"""Methods of the things the walk knows: what each leaves on the tape."""

from __future__ import annotations

import ast

from gradclinic.facts import ActorKind, EventKind
from gradclinic.static import frameworks, holdings, modes, ranks, words
from gradclinic.static.arithmetic import averaged, of_this_batch
from gradclinic.static.averages import averages_itself
from gradclinic.static.conditions import holds, truth
from gradclinic.static.forwards import forward
from gradclinic.static.gradients import act_on_gradient, act_on_parameter, clip
from gradclinic.static.held import models_among, models_in, optimizers_in, parts
from gradclinic.static.hidden_backwards import may_go_backward
from gradclinic.static.opaque import build, open_given, open_tape, returned
from gradclinic.static.recorder import UNLIKELY
from gradclinic.static.roles import actor, infer, role_of
from gradclinic.static.scalers import call_scaler, scaled_by
from gradclinic.static.step_hooks import AFTER_STEP, BEFORE_STEP, register, run_hooks
from gradclinic.static.supposing import settled
from gradclinic.static.syntax import is_until, last_name
from gradclinic.static.values import (
    NONE,
    NOTHING,
    Accelerator,
    ActorRef,
    Bound,
    Const,
    Criterion,
    Func,
    Grad,
    Instance,
    Model,
    Num,
    Params,
    Stream,
    Tensor,
    Unknown,
    Value,
)  # fmt: skip
from gradclinic.static.walk import Arguments, Walk

_SAME_MODEL = words.names(
    "to cuda cpu half float double bfloat16 train eval requires_grad_ compile share_memory"
)
_DETACHED = words.names("item numpy tolist detach detach_ argmax size")
_OF_A_PIPELINE = words.names("target losses return_outputs")
"""What the `step` of a pipeline's schedule takes: it goes forward and backward through all stages."""
_COUNTS = frozenset({"sum", "numel"})
_GIVES_A_LOSS = frozenset({"training_step", "validation_step"})
"""By the convention of Lightning: the caller goes backward and steps."""
_GIVES_PARAMETERS = words.Pattern(r"get_((?!num|n_|count|total|size|max)\w+_)?(params|parameters)$")
"""`model.get_trainable_params()`, and not `model.get_num_params()`."""
_MODEL_QUIET = words.names(
    "state_dict load_state_dict modules children named_modules named_children apply no_sync "
    "register_buffer register_forward_hook buffers named_buffers save_pretrained add_module "
    "share_memory get_submodule"
)


def call_known(walk: Walk, base: Value, attr: str, args: Arguments, node: ast.Call) -> Value | None:
    """The outcome of a method of an actor, model or tensor; None for other things."""
    if isinstance(base, Unknown):
        return _unknown(walk, base, attr, args, node)
    if isinstance(base, ActorRef):
        if base.kind is ActorKind.OPTIMIZER:
            return _optimizer(walk, base, attr, args, node)
        return (call_scaler if base.kind is ActorKind.SCALER else _schedule)(walk, base, attr, args, node)
    if isinstance(base, Model):
        return _model(walk, base, attr, args, node)
    if isinstance(base, Tensor):
        return _tensor(walk, base, attr, args, node)
    if isinstance(base, Grad):
        return act_on_gradient(walk, base, attr, args, node)
    if isinstance(base, Params):
        if attr == "requires_grad_":
            holdings.freeze(walk, base, args.get(0, "requires_grad") or Const(True), node)
        return act_on_parameter(walk, base, attr, node)
    if isinstance(base, Accelerator):
        return frameworks.call_accelerator(walk, base, attr, args, node)
    if isinstance(base, (Const, Num)):
        if attr == "backward":  # `loss = 0` that branches not followed here have added to
            backward(walk, base, node)
        return Unknown(f"<{attr}>")
    if isinstance(base, Criterion):
        return base if attr in _SAME_MODEL else None
    if isinstance(base, Stream) and attr == "next":
        walk.emit(EventKind.BATCH, node)
        return Unknown(f"next({base.path})")
    return base if isinstance(base, Stream) else None


def backward(walk: Walk, loss: Value, node: ast.AST, gradient: Value | None = None) -> None:
    """`gradient`: what the loss is multiplied by on the way."""
    tensor = loss if isinstance(loss, Tensor) else Tensor(models=None, scaled=None)
    # The steps of a sequence may well be added up: `while not done`.
    summed = not tensor.scaled and any(is_until(loop) for _, _, loop in walk.loops)
    unsure = summed or walk.survey.privately or (gradient is not None and truth(gradient) is not False)
    attrs: dict[str, object] = {"scaled": None if unsure else tensor.scaled}
    if attrs["scaled"] is False and walk.survey.scales_elsewhere:
        attrs["scaled"] = None
    if attrs["scaled"] is False and tensor.divided_by:
        attrs["divided_by"] = tensor.divided_by
    if tensor.scaler is not None:
        attrs["scaler"] = tensor.scaler
    if walk.autocast:
        attrs["autocast"] = settled(walk, walk.autocast[-1][1]) is not False  # the innermost decides
    if walk.in_step:
        attrs["in_step"] = True
    if walk.scaling:
        walk.scaling[-1] = True
    attrs.update(ranks.reduction(walk, tensor))
    models = None if tensor.models is not None and not tensor.models else tensor.models
    walk.emit(EventKind.BACKWARD, node, models=models, attrs=attrs)


def _perhaps_divided(loss: Value) -> Value:
    """A loss given to a framework's backward, which may divide it for its window."""
    if not isinstance(loss, Tensor) or loss.scaled:
        return loss
    return Tensor(loss.models, None, loss.scaler, loss.loss)


def _optimizer(walk: Walk, base: ActorRef, attr: str, args: Arguments, node: ast.Call) -> Value | None:
    mine = frozenset({base.id})
    if attr == "zero_grad":
        if frameworks.acts_now(walk, base):
            to_none = args.get(0, "set_to_none")
            keeps = isinstance(to_none, Const) and to_none.value is False
            attrs = {"keeps": keeps, "skips": bool(walk.skipping)} if keeps or walk.skipping else None
            walk.emit(EventKind.ZERO_GRAD, node, actor=base.id, optimizers=mine, attrs=attrs)
        return NONE
    if attr in ("step", "manual_step"):
        closure = args.get(0, "closure")
        if args.keywords.keys() - {"closure"}:
            open_tape(walk, node, optimizers=mine)
        result: Value = NONE
        if isinstance(closure, Func):
            walk.in_step += 1
            result = walk.call(walk, closure, Arguments(), node)
            walk.in_step -= 1
        elif closure is not None and not isinstance(closure, Const):
            # One that takes the loss, or options, is no optimizer of torch and may do the whole update.
            open_tape(walk, node, optimizers=mine)
        if frameworks.acts_now(walk, base):
            run_hooks(walk, BEFORE_STEP, mine, node, base)
            walk.emit(EventKind.STEP, node, actor=base.id, optimizers=mine)
            run_hooks(walk, AFTER_STEP, mine, node, base)
        return result
    if register(walk, attr, base, args):
        return Unknown("<hook>")
    if attr == "add_param_group":
        walk.recorder.extend(base.id, models_in(args.all()) or NOTHING)
        return NONE
    if attr == "backward":
        backward(walk, args.get(0, "loss") or NONE, node)
        return NONE
    if attr in words.CLIPS or attr == "clip_master_grads":
        clip(walk, mine, NOTHING, node)
        return NONE
    if attr not in ("train", "eval") and not words.harmless(attr):
        open_tape(walk, node, optimizers=mine)
    return Unknown(f"{base.id}.{attr}()")


def _schedule(walk: Walk, base: ActorRef, attr: str, args: Arguments, node: ast.Call) -> Value | None:
    if attr == "step" and (not base.prepared or walk.synced):
        schedule = walk.recorder.known(base.id)
        of = frozenset(id for id in schedule.of if id.startswith(ActorKind.OPTIMIZER))
        attrs: dict[str, object] = {"prepared": True} if base.prepared else {}
        if args.all() and schedule.attrs.get("kind") != "ReduceLROnPlateau":
            attrs["explicit"] = True
        if walk.scale_guarded:
            attrs["guarded"] = True
        if walk.trains_in_loop():
            attrs["looped"] = True
        if args.keywords.keys() & _OF_A_PIPELINE:
            open_tape(walk, node)
            return Unknown(f"{base.id}.{attr}()")
        models = NOTHING if of else None
        walk.emit(EventKind.SCHEDULE, node, actor=base.id, optimizers=of, models=models, attrs=attrs)
    return Unknown(f"{base.id}.{attr}()")


def _model(walk: Walk, base: Model, attr: str, args: Arguments, node: ast.Call) -> Value | None:
    if attr in ("train", "eval"):
        mode = args.get(0, "mode") if attr == "train" else Const(False)
        training = True if mode is None else modes.wanted(walk, mode, node)
        walk.emit(EventKind.MODE, node, actor=base.name, models=base.whole(), attrs={"training": training})
        modes.switch(base, training if not modes.varies(walk, node) else None, walk.at(node))
        return base
    if attr in ("parameters", "named_parameters", "trainable_parameters") or _GIVES_PARAMETERS.match(attr):
        return Params(base.whole())
    if attr == "zero_grad":
        walk.emit(EventKind.ZERO_GRAD, node, actor=base.name, models=base.whole())
        return NONE
    called_on = last_name(node.func.value) if isinstance(node.func, ast.Attribute) else ""
    if attr == "step" and words.SCHEDULE_NAME.search(called_on):
        return NONE  # `bn_scheduler.step()` sets the momentum of the layers that it was given
    if attr in ("backward", "step"):
        return frameworks.call_engine(walk, base, attr, args, node)
    if attr in words.CLIPS:
        clip(walk, NOTHING, base.keys, node)
        return NONE
    if attr == "requires_grad_":
        holdings.freeze(walk, base, args.get(0, "requires_grad") or Const(True), node)
    if attr in _SAME_MODEL:
        return base
    if attr in ("forward", "__call__", "module"):
        around = base.inside() if attr == "module" and base.inner is not None else base
        return forward(walk, around, args, node)
    if register(walk, attr, base, args):
        return Unknown("<hook>")
    if attr in _MODEL_QUIET:
        # By its key: what comes out of `model.modules()` is part of the model.
        return Unknown(f"{min(base.keys, default=base.name)}.{attr}()")
    if words.OPTIMIZER_FACTORY.search(attr):
        return build(walk, ActorKind.OPTIMIZER, attr, node, of=base.whole())
    if role_of(walk.survey, walk.assigning.rsplit(".", 1)[-1]) == "model":
        return Model(frozenset({walk.made(walk.assigning, node)}), walk.assigning)
    optimizers = optimizers_in(args.all())
    if optimizers:
        open_given(walk, attr, node, optimizers, args.all())
    elif _steps_by_itself(base, attr, args):
        open_tape(walk, node, models=base.keys)
    elif may_go_backward(walk, attr, args.all(), node):  # `weighting.combine(loss_list)`
        open_tape(walk, node)
    modes.after_method(walk, base, attr)
    if walk.for_effect is node and words.harmless(attr):
        return NONE  # `model.visualize(outputs)`: what it computes is for nobody
    if modes.writes(walk, base, attr):
        walk.no_grad += 1  # by itself
        written = forward(walk, base, args, node)
        walk.no_grad -= 1
        return written
    # What gives the loss that is trained by has a graph; of others nobody knows, unless they are in sight.
    direct = modes.gives_a_loss(attr) or (bool(walk.sweeps) and modes.computes(walk, base, attr, args.all()))
    return forward(walk, base, args, node, direct=direct)


def _steps_by_itself(base: Model, attr: str, args: Arguments) -> bool:
    if not words.steps_by_itself(attr) or attr in _GIVES_A_LOSS:
        return False
    return not words.AVERAGE.search(base.name) and not averages_itself(attr, args.all())


def _tensor(walk: Walk, base: Tensor, attr: str, args: Arguments, node: ast.Call) -> Value | None:
    if attr == "backward":
        backward(walk, base, node, args.get(0, "gradient"))
        return NONE
    if attr in ("zero_grad", "parameters", "named_parameters", "step"):
        return _unknown(walk, Unknown("<tensor>"), attr, args, node)
    if attr in _DETACHED:
        return Tensor() if attr.startswith("detach") else Unknown(f"<tensor>.{attr}()")
    result = Tensor(base.models, base.scaled, base.scaler, base.loss)
    if attr in ("sum", "mul", "mul_") and base.scaled is not True:
        result.scaled = None
    elif attr in ("div", "div_", "true_divide"):
        result.scaled = True
        if attr == "div_":
            base.scaled = True
    elif attr == "mean":
        result = averaged(base)
    for value in args.all():
        if isinstance(value, Tensor) and result.models is not None:
            result.models = None if value.models is None else result.models | value.models
    return result


def _unknown(walk: Walk, base: Unknown, attr: str, args: Arguments, node: ast.Call) -> Value | None:
    if attr in ("backward", "manual_backward"):
        given = args.get(0, "loss")
        if isinstance(given, Tensor) or (
            given is not None and not isinstance(given, Const) and args.positional
        ):
            backward(walk, _perhaps_divided(given), node)
        else:
            backward(walk, base, node)
        return NONE
    if attr in ("parameters", "named_parameters"):
        return Params(None)
    if attr == "zero_grad":
        part = "." in base.path.removeprefix("self.")  # `head.last_layer`, for all that is known
        walk.emit(EventKind.ZERO_GRAD, node, models=None, attrs={"partly": True} if part else None)
        return NONE
    if attr in ("train", "eval") and not args.all():  # of what may well be a model by another name
        walk.emit(EventKind.MODE, node, actor=base.path, attrs={"training": attr == "train"})
    if attr in words.CLIPS:
        optimizers = optimizers_in(args.all())
        clip(walk, optimizers, models_in(args.all()), node)
        return Unknown(f"{base.path}.{attr}()")
    if attr in _COUNTS and not args.keywords:
        return of_this_batch(walk, f"{base.path}.{attr}()")
    name = base.path.rsplit(".", 1)[-1]
    called = last_name(node.func.value) if isinstance(node.func, ast.Attribute) else ""
    # Some optimizers of a project's own are told what to step: `optimizer.step("decoder")`.
    steps = attr == "step" and not any(map(words.NOT_AN_OPTIMIZER.search, (name, called)))
    if steps and (not args.all() or words.OPTIMIZER_NAME.search(name)):
        open_tape(walk, node)
        return NONE
    if attr in ("prepare", "setup") and (optimizers_in(args.all()) or models_in(args.all())):
        return frameworks.prepared(args)
    return None


def call_inherited(walk: Walk, base: Instance, attr: str, args: Arguments, node: ast.Call) -> Value | None:
    """A method that the file's class does not define."""
    if attr == "manual_backward":
        backward(walk, args.get(0, "loss") or NONE, node)
        return NONE
    if attr == "backward" and args.positional:
        backward(walk, _perhaps_divided(args.positional[0]), node)
        return NONE
    if attr == "optimizers" and base.model is not None:
        return infer(walk, walk.assigning.rsplit(".", 1)[-1], "self.optimizers()")
    if attr == "lr_schedulers" and base.model is not None:
        return actor(walk, ActorKind.SCHEDULE, "self.lr_schedulers()")
    if attr == "clip_gradients":
        clip(walk, optimizers_in(args.all()), NOTHING, node)
        return NONE
    if base.model is not None:
        if attr in ("log", "log_dict"):
            return NONE
        result = _model(walk, base.model, attr, args, node)
        return base if result is base.model else result  # `net = Net().cuda()` has its methods still
    if role_of(walk.survey, attr) in ("model", "criterion") or _has_nothing(base, args):
        return None
    if base.cls.outside_bases() and not words.harmless(attr):
        # `fake = self.activate(fake)`: asked for what it gives, by a name that does not speak of training.
        asked = walk.for_effect is not node and not words.MAY_TRAIN.search(attr)
        given = parts(args.all())
        unlikely = asked and not any(isinstance(part, (ActorRef, Accelerator, Func, Bound)) for part in given)
        walk.emit(EventKind.OPAQUE, node, models=None, attrs={UNLIKELY: True} if unlikely else None)
        modes.doubt(attr, parts([base]))
        return returned(walk, Unknown(f"{base.name}.{attr}"), args)
    return None


def _has_nothing(base: Instance, args: Arguments) -> bool:
    """Whether it was never given anything that is trained, as an environment is not."""
    return base.given is not None and not any(
        isinstance(part, (ActorRef, Accelerator, Model, Params, Func, Tensor))
        for part in parts([base, *base.given, *args.all()])
    )


def call_actor(walk: Walk, func: Value, args: Arguments, node: ast.Call) -> Value | None:
    """An optimizer or scaler that is itself called: timm's `loss_scaler(loss, optimizer, ...)`."""
    if isinstance(func, ActorRef) and func.kind is ActorKind.SCALER and len(args.all()) >= 2:
        return _native_scaler(walk, func, args, node)
    if isinstance(func, ActorRef) and func.kind is ActorKind.SCHEDULE:
        # A function that tells the rate, or a schedule that sets it: neither touches a gradient.
        walk.emit(EventKind.OPAQUE, node, actor=func.id)
        return Unknown(f"{func.id}()")
    if isinstance(func, ActorRef):
        given = parts(args.all())
        if func.kind is ActorKind.OPTIMIZER and any(isinstance(part, Params) for part in given):
            # A class that was handed in: `self.optimizer = optimizer(model.parameters(), lr=rate)`.
            name = last_name(node.func)
            return build(walk, ActorKind.OPTIMIZER, name, node, of=models_among(given) or NOTHING)
        open_tape(
            walk, node, optimizers=frozenset({func.id}) if func.kind is ActorKind.OPTIMIZER else NOTHING
        )
        return Unknown(f"{func.id}()")
    if isinstance(func, (Tensor, Params, Grad)):
        return func
    return None


def _native_scaler(walk: Walk, scaler: ActorRef, args: Arguments, node: ast.Call) -> Value:
    loss = args.get(0, "loss")
    optimizers = optimizers_in(args.all())
    backward(walk, scaled_by(walk, scaler, loss), node)
    updates = args.keywords.get("update_grad") or args.keywords.get("need_update")
    if updates is None or holds(walk, updates):
        through = {"scaler": scaler.id}
        walk.emit(EventKind.UNSCALE, node, actor=scaler.id, optimizers=optimizers, attrs=through)
        for optimizer in sorted(optimizers):
            walk.emit(EventKind.STEP, node, actor=optimizer, optimizers=frozenset({optimizer}), attrs=through)
        walk.emit(EventKind.SCALER_UPDATE, node, actor=scaler.id)
    return Unknown(f"{scaler.id}()")
