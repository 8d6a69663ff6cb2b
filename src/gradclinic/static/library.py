"""Calls into torch, the frameworks around it, and Python's own functions."""

from __future__ import annotations

import ast
from collections.abc import Callable

from gradclinic.facts import ActorKind, EventKind
from gradclinic.static import methods, schedules, words
from gradclinic.static.arithmetic import averaged, combine, of_this_batch
from gradclinic.static.attributes import get_attribute
from gradclinic.static.conditions import OF_GRADIENTS, asks_gradients, name_of, truth
from gradclinic.static.forwards import compute_loss
from gradclinic.static.frameworks import initialize_engine
from gradclinic.static.gradients import act_on_gradient, assign_gradient
from gradclinic.static.handing import run_given
from gradclinic.static.held import models_in, parts
from gradclinic.static.layers import layers_of_call
from gradclinic.static.library_models import from_hub, know_layers
from gradclinic.static.opaque import build, call_outside, clip_parameters
from gradclinic.static.ranks import REPLICATES, is_wrapper, wrap
from gradclinic.static.settings import optimizer_settings
from gradclinic.static.step_hooks import register
from gradclinic.static.values import (
    NONE,
    NOTHING,
    Accelerator,
    ActorRef,
    Const,
    Criterion,
    Engine,
    Func,
    Grad,
    Instance,
    Lib,
    Map,
    Mode,
    Model,
    Num,
    Params,
    Range,
    Seq,
    Stream,
    Tensor,
    Unknown,
    Value,
)  # fmt: skip
from gradclinic.static.walk import Arguments, Stop, Walk

_THROUGH = words.names(
    "tqdm trange iter list tuple sorted reversed islice track zip chain cycle progress_bar prefetch"
)
_NO_MODELS = ("Tokenizer", "Processor", "Config", "Scheduler", "FeatureExtractor")
"""Words of classes whose `from_pretrained` gives no model."""
_PLAIN_ROOTS = (
    "torch.",
    "numpy.",
    "logging.",
    "os.",
    "math.",
    "random.",
    "time.",
    "json.",
    "wandb.",
    "builtins.",
    "sys.",
)


def call_library(walk: Walk, name: str, args: Arguments, node: ast.Call) -> Value:
    last = name.rsplit(".", 1)[-1]
    if name.startswith("builtins."):
        return _builtin(walk, last, args, node)
    handler = _TORCH.get(last)
    if handler is not None:
        handled = handler(walk, name, args, node)
        if handled is not None:
            return handled
    if name.startswith(("torch.", "einops.")):
        return _torch(walk, name, last, args, node)
    if words.SCHEDULE_BUILDERS.match(last) and schedules.gives_torchs_own(name, walk.path):
        schedule = schedules.build_schedule(walk, last, args, node)
        if schedule is not None:
            return schedule
    if last in _THROUGH and args.positional:
        return _stream(walk, last, args)
    if last == "Engine" and name.startswith("ignite.") and args.positional:
        update = args.positional[0]
        return Engine(update) if isinstance(update, Func) else Unknown(f"{name}()")
    if name.startswith(_PLAIN_ROOTS):
        if name in ("sys.exit", "os._exit"):
            raise Stop
        return Unknown(f"{name}()")
    ran = run_given(walk, name, args, node)
    made = call_outside(walk, Unknown(name), last, args, node, origin=name, ran=ran)
    if isinstance(made, Model):
        # What it went in by it may come out by, and be more than it was.
        made.origin = "" if any(made is value for value in args.all()) else name
        know_layers(walk, made, made.origin, args)
    return made


def _torch(walk: Walk, name: str, last: str, args: Arguments, node: ast.Call) -> Value:
    if name == "torch.autograd.backward":
        methods.backward(walk, args.get(0, "tensors") or NONE, node, args.get(1, "grad_tensors"))
        return NONE
    if name == "torch.save":
        walk.emit(EventKind.SAVE, node)
        return NONE
    if register(walk, last, None, args):
        return Unknown("<hook>")
    if last.startswith("all_reduce") and args.positional and isinstance(args.positional[0], Grad):
        assign_gradient(walk, args.positional[0].of, None, node)
        return NONE
    if last.startswith("_foreach_") and last.endswith("_"):
        for gradient in [part for part in parts(args.positional[:1]) if isinstance(part, Grad)]:
            act_on_gradient(walk, gradient, last.removeprefix("_foreach_"), args, node)
    if last in words.CLIPS:
        return clip_parameters(walk, args, node)
    if last.islower() and args.positional and node.args and _comes_back(walk, args.positional[0], node):
        return args.positional[0]
    if "nn." in name or name.startswith(("torch.losses", "torch.functional")):
        return _nn(walk, name, last, args, node)
    if "data.DataLoader" in name:
        return Stream(walk.assigning or "loader")
    if name == "torch.hub.load":
        return from_hub(walk, args, node)
    tensors = [part for part in parts(args.all()) if isinstance(part, Tensor)]
    if tensors:
        result = tensors[0]
        for other in tensors[1:]:
            result = combine(result, other)
        if last in ("sum", "mul"):
            result = Tensor(result.models, result.scaled or None, result.scaler, result.loss)
        return averaged(result) if last == "mean" else result
    if last in (
        "from_numpy",
        "tensor",
        "randn",
        "rand",
        "zeros",
        "ones",
        "randint",
        "arange",
        "empty",
        "full",
    ):
        return Tensor() if last in ("zeros", "ones", "tensor") else Unknown(f"{name}()@{node.lineno}")
    if last == "load":
        return Unknown(f"torch.load@{node.lineno}")
    if args.positional and asks_gradients(args.positional[0]):
        return Unknown(f"{name}({OF_GRADIENTS})")
    return of_this_batch(walk, f"{name}()") if last == "sum" else Unknown(f"{name}()")


def _comes_back(walk: Walk, given: Value, node: ast.Call) -> bool:
    """`model = torch.jit.script(model)`."""
    return isinstance(given, (Model, Instance)) and ast.unparse(node.args[0]) == walk.assigning


def _nn(walk: Walk, name: str, last: str, args: Arguments, node: ast.Call) -> Value:
    if last in words.WRAPPERS:
        return _first_model(args) or Unknown(f"{name}()")
    if ".functional." in name or last.islower():
        if words.LOSS_FUNCTION.search(last):
            return compute_loss(walk, args, node, mean=True)
        tensors = [value for value in args.all() if isinstance(value, Tensor)]
        return tensors[0] if tensors else Unknown(f"{name}()")
    if last.endswith("Loss"):
        reduction = args.keywords.get("reduction")
        averages = reduction is None or (isinstance(reduction, Const) and reduction.value == "mean")
        return Criterion(mean=True if averages else None)
    if last == "Parameter":
        return Params(frozenset({f"parameter@{node.lineno}"}))
    keys = frozenset({walk.made(last, node)}) | (models_in(args.all()) or NOTHING)
    layers = layers_of_call(last, args)
    # `nn.Sequential(*list(model.children())[:-1])` is the model itself, but for its last layer.
    return Model(keys, walk.assigning or last, mode=Mode(True), layers=layers, unseen=args.partial)


def _optimizer(walk: Walk, name: str, args: Arguments, node: ast.Call) -> Value | None:
    last = name.rsplit(".", 1)[-1]
    given = args.get(0, "params")
    if (given is None and not args.partial) or isinstance(given, Map):
        return None  # Settings, not parameters: Pyro's optimizers find theirs while they go
    of = models_in([given]) if given is not None else None
    if any(key.startswith("<") for key in of or ()):
        of = None  # parts of what two branches left: they may be of any model
    attrs = {"torch": name.startswith("torch."), **optimizer_settings(walk, last, args)}
    items = given.items if isinstance(given, Seq) else ()
    if items and all(type(item) in (Tensor, Unknown) for item in items):
        attrs["tensors"] = True  # `LBFGS([image])`: what goes through a model is trained, not the model
    return build(walk, ActorKind.OPTIMIZER, last, node, of=of or NOTHING, attrs=attrs)


def _schedule(walk: Walk, name: str, args: Arguments, node: ast.Call) -> Value | None:
    path = walk.frame.module.path or walk.path
    if schedules.has_torchs_name_only(name, path):
        return None
    as_torch = not schedules.is_out_of_sight(name, path)
    return schedules.build_schedule(walk, name.rsplit(".", 1)[-1], args, node, as_torch=as_torch)


def _scaler(walk: Walk, name: str, args: Arguments, node: ast.Call) -> Value | None:
    enabled = args.keywords.get("enabled")
    off = isinstance(enabled, Const) and enabled.value is False
    made = build(walk, ActorKind.SCALER, name.rsplit(".", 1)[-1], node, attrs={"enabled": not off})
    if enabled is not None and truth(enabled) is None:
        walk.switches[made.id] = enabled
    return made


def _wrapper(walk: Walk, name: str, args: Arguments, node: ast.Call) -> Value | None:
    model = _first_model(args)
    if model is not None and name.startswith("torch.") and name.rsplit(".", 1)[-1] in REPLICATES:
        return wrap(walk, model)
    return model


def _first_model(args: Arguments) -> Model | None:
    """What a coat is put around: a module whose class does more than compute is a model all the same."""
    given = (part.model if isinstance(part, Instance) else part for part in args.all())
    return next((part for part in given if isinstance(part, Model)), None)


def _accelerator(walk: Walk, name: str, args: Arguments, node: ast.Call) -> Value | None:
    window = args.keywords.get("gradient_accumulation_steps")
    if window is None and not args.partial and not any("plugin" in name for name in args.keywords):
        window = Num(1)
    known = window if isinstance(window, Num) else walk.invented(walk.window, "accumulation")
    return Accelerator("accelerate" if name.endswith("Accelerator") else "fabric", known)


def _engine(walk: Walk, name: str, args: Arguments, node: ast.Call) -> Value | None:
    if "deepspeed" in name:
        return initialize_engine(walk, args)
    if "amp" in name:
        return Seq(list(args.positional)) if len(args.positional) > 1 else Seq(args.all()[:2])
    return None


def _pretrained(walk: Walk, name: str, args: Arguments, node: ast.Call) -> Value | None:
    if any(word in name for word in _NO_MODELS):
        return Unknown(f"{name}()")
    label = walk.assigning or "model"
    if not words.MODEL_NAME.search(label) and "Model" not in name:
        return None
    model = Model(frozenset({walk.made(label, node)}), label, mode=Mode(untouched=False))
    model.origin = name
    know_layers(walk, model, name, args)
    return model


def _stream(walk: Walk, last: str, args: Arguments) -> Value:
    source = args.positional[0]
    if last == "zip" and any(isinstance(value, Params) for value in args.positional):
        return Seq([Seq(list(args.positional))])
    if last in ("chain", "zip"):
        known = [value for value in args.positional if isinstance(value, Params)]
        if known:
            keys = [value.models for value in known]
            return Params(None if None in keys else frozenset().union(*(key or NOTHING for key in keys)))
        streams = [value for value in args.positional if isinstance(value, Stream)]
        if streams:
            return Stream(streams[0].path)
        if last == "zip" and all(isinstance(value, Seq) for value in args.positional):
            rows = zip(*(value.items for value in args.positional if isinstance(value, Seq)), strict=False)
            return Seq([Seq(list(row)) for row in rows])
        if last == "zip" and len(args.positional) > 1:
            return Stream(name_of(source), zipped=tuple(args.positional))
    if last == "trange":
        return _range(args)
    return source


def _builtin(walk: Walk, name: str, args: Arguments, node: ast.Call) -> Value:
    source = args.positional[0] if args.positional else NONE
    if name == "range":
        return _range(args)
    if name == "enumerate":
        start = args.get(1, "start")
        first = start.value if isinstance(start, Num) and start.value is not None else 0
        if isinstance(source, Seq):
            return Seq([Seq([Num(first + index), item]) for index, item in enumerate(source.items)])
        if isinstance(source, Params):
            return Seq([Seq([Num(first), source])])
        path = source.path if isinstance(source, Stream) else name_of(source)
        return Stream(path, counted=True, start=first, source=source)
    if name == "len":
        if isinstance(source, (Seq, Map)):
            return Num(len(source.items))
        if isinstance(source, Stream):
            unit = "sample" if words.SAMPLES_NAME.search(source.path) else "batch"
            return walk.invented(walk.data_length, unit)
        return Num(None)
    if name == "next":
        if not isinstance(source, (Params, Model)):
            walk.emit(EventKind.BATCH, node)
        return source if isinstance(source, Params) else Unknown(f"next({name_of(source)})")
    if name in ("exit", "quit"):
        raise Stop
    if name == "sum":
        return _sum(source)
    if name in ("int", "max", "min", "round", "abs"):
        units = [value.units for value in args.positional if isinstance(value, Num)]
        if isinstance(source, Num) and (name == "int" or name == "round"):
            return source
        return Num(None, units=frozenset().union(*units)) if units else Unknown(f"{name}({name_of(source)})")
    if name in ("list", "tuple", "iter", "reversed", "sorted", "zip", "set", "filter", "map"):
        if name in ("filter", "map") and len(args.positional) > 1:
            return args.positional[1] if name == "filter" else Unknown(f"map({name_of(args.positional[1])})")
        if not args.positional:
            return Seq([])
        return _stream(walk, name, args)
    if name == "dict":
        return Map(dict(args.keywords.items())) if not args.positional else source
    if name == "getattr" and len(args.positional) > 1 and isinstance(args.positional[1], Const):
        found = get_attribute(walk, source, str(args.positional[1].value))
        default = args.positional[2] if len(args.positional) > 2 else None
        if isinstance(found, Unknown) and isinstance(default, ActorRef):
            # `getattr(config, "optimizer", SGD(...))`: what may be there instead is one as well.
            walk.recorder.escapes(default.id)
            return ActorRef(default.id, default.kind, built=False)
        return found
    if name == "getattr" and isinstance(source, (Model, Instance)):
        return Unknown(f"getattr({name_of(source)})", holds=(source,))  # `train` or `eval`, say
    if name == "bool":
        return source
    if name == "isinstance" and isinstance(source, Map) and _names_dict(args.get(1, "")):
        return Const(True)  # `if isinstance(optimizer, dict): for one in optimizer.values(): one.step()`
    known = schedules.is_one(walk, source, args.get(1, "")) if name == "isinstance" else None
    if known is not None:
        return Const(known)
    if name in ("hasattr", "isinstance") and is_wrapper(source, parts(args.positional[1:])):
        return Const(True)
    return Unknown(f"{name}({', '.join(name_of(value) for value in args.positional)})")


def _names_dict(kind: Value | None) -> bool:
    return isinstance(kind, Lib) and kind.name == "builtins.dict"


def _range(args: Arguments) -> Value:
    if len(args.positional) >= 2:
        low, high = args.positional[:2]
        start = low.value if isinstance(low, Num) and low.value is not None and not low.invented else 0
        if isinstance(high, Num) and high.value is not None and isinstance(low, Num):
            return Range(Num(max(high.value - start, 0), high.invented or low.invented, high.units), start)
        return Range(high if isinstance(high, Num) and high.value is None else Unknown("<stop>"), start)
    return Range(args.positional[0] if args.positional else NONE)


def _sum(source: Value) -> Value:
    tensors = [part for part in parts([source]) if isinstance(part, Tensor)]
    if not tensors:
        return (
            Tensor(None, None)
            if isinstance(source, Unknown) and words.LOSS_NAME.search(source.path)
            else Unknown("sum()")
        )
    result = tensors[0]
    for other in tensors[1:]:
        result = combine(result, other)
    return result


def _step_of_all_cores(walk: Walk, name: str, args: Arguments, node: ast.Call) -> Value | None:
    """`xm.optimizer_step(optimizer)`: averages the gradients of all cores, and steps."""
    optimizer = args.get(0, "optimizer")
    if not name.startswith("torch_xla.") or not isinstance(optimizer, ActorRef):
        return None
    return methods.call_known(walk, optimizer, "step", Arguments(), node)


_TORCH: dict[str, Callable[[Walk, str, Arguments, ast.Call], Value | None]] = {
    **dict.fromkeys(words.TORCH_OPTIMIZERS, _optimizer),
    **dict.fromkeys(words.TORCH_SCHEDULES, _schedule),
    **dict.fromkeys(words.GRAD_SCALERS, _scaler),
    **dict.fromkeys(words.WRAPPERS, _wrapper),
    "Accelerator": _accelerator,
    "Fabric": _accelerator,
    "initialize": _engine,
    "from_pretrained": _pretrained,
    "optimizer_step": _step_of_all_cores,
}
