"""Calls: who answers, and how functions and classes of the file are entered."""

from __future__ import annotations

import ast
import re

from gradclinic.facts import EventKind
from gradclinic.static import methods, modes, own_clips, words
from gradclinic.static.abilities import Can
from gradclinic.static.applying import apply, call_partial, unbound
from gradclinic.static.attributes import get_attribute
from gradclinic.static.containers import call_collection, call_unseen
from gradclinic.static.declared import learn_layers
from gradclinic.static.engines import call_engine
from gradclinic.static.forwards import compute_loss, forward
from gradclinic.static.held import models_in, parts
from gradclinic.static.joining import joined
from gradclinic.static.layers import layers_of_class
from gradclinic.static.library import call_library
from gradclinic.static.modules import resolved
from gradclinic.static.opaque import call_outside, clip_parameters, clips_merely
from gradclinic.static.own_optimizers import own_optimizer
from gradclinic.static.roles import infer, role_of, taken_for
from gradclinic.static.schedules import own_schedule
from gradclinic.static.syntax import is_left_open, names_in
from gradclinic.static.values import (
    NONE,
    NOTHING,
    ActorRef,
    Bound,
    ClassDef,
    Const,
    Criterion,
    Engine,
    Frame,
    Func,
    FunctionNode,
    Instance,
    Lib,
    Map,
    Mode,
    Model,
    Num,
    Partial,
    Seq,
    Stream,
    Unknown,
    Value,
    library,
)  # fmt: skip
from gradclinic.static.walk import DEEPEST_CALL, DEEPEST_SUMMARY, Arguments, ReturnValue, Stop, Walk

_NO_GRAD = ("no_grad", "inference_mode")
_KEEPS_GRADIENTS = words.Pattern(
    r"method|property|main|command|option|argument|record|override|overload|final|deprecat|cache|wraps|jit|script|"
    r"compil|profile|tim(e|ing)|retry|rank|log|hydra|sacred|register|task|app\b|typecheck|autocast",
    re.I,
)
"""Decorators that do not run what they adorn without gradients; of others that is not known."""


def call(walk: Walk, func: Value, args: Arguments, node: ast.Call, name: str) -> Value:
    if isinstance(func, Unknown):  # as most of what is called
        return call_outside(walk, func, name, args, node)
    if isinstance(func, Func):
        if name in words.CLIPS and clips_merely(parts(args.all())):
            walk.reached.add(func.node)  # a copy of torch's own, as a rule
            return clip_parameters(walk, args, node)
        if words.OWN_CLIP.match(name):
            return own_clips.call(walk, func, args, node)
        fetches = words.FETCH_FUNCTION.match(name) and not walk.can(func.node) & (Can.ACT | Can.FETCH)
        if fetches and not _asks_for_one_of(walk, node):
            walk.emit(EventKind.BATCH, node)  # `get_batch("train")` of the file's own
        return call_function(walk, func, args, node)
    if isinstance(func, ClassDef):
        return instantiate(walk, func, args, node)
    if isinstance(func, Bound):
        return call_method(walk, func.base, func.attr, args, node)
    if isinstance(func, Partial):
        return call_partial(walk, func, args, node, name, call)
    if isinstance(func, Lib):
        known = resolved(walk, func)
        if known is not func:
            return call(walk, known, args, node, name)
        method = unbound(func.name, args)
        if method is not None:
            return call(walk, method, Arguments(args.positional[1:], args.keywords), node, name)
        return apply(walk, func.name, args, node, call) or call_library(walk, func.name, args, node)
    if isinstance(func, Instance):
        return _call_instance(walk, func, args, node)
    if isinstance(func, Model):
        if _names_a_class(name) and walk.assigning:
            return Model(frozenset({walk.made(name, node)}), walk.assigning)
        return forward(walk, func, args, node)
    if isinstance(func, Criterion):
        return compute_loss(walk, args, node, mean=func.mean)
    return methods.call_actor(walk, func, args, node) or call_outside(walk, func, name, args, node)


def _names_a_class(name: str) -> bool:
    """`Model = load_model(name)` gave a class, for so classes are written; `G` and `netG` are models."""
    return len(name) > 2 and name[0].isupper() and name[1].islower()


def _asks_for_one_of(walk: Walk, node: ast.Call) -> bool:
    """`for task in tasks: get_batch(task)`: each of them has data of its own, and an objective."""
    loop = walk.loops[-1][2] if walk.loops else None
    if not isinstance(loop, (ast.For, ast.AsyncFor)):
        return False
    targets = set(names_in(loop.target))
    return any(targets & set(names_in(given)) for given in (*node.args, *(k.value for k in node.keywords)))


def call_method(walk: Walk, base: Value, attr: str, args: Arguments, node: ast.Call) -> Value:
    if isinstance(base, Unknown):
        handled = call_unseen(base, attr, args) or methods.call_known(walk, base, attr, args, node)
        if handled is not None:
            return handled
        method = get_attribute(walk, base, attr)
        if isinstance(method, Stream) and base.holds and attr.startswith("train"):
            # `trainer.train()` gives no data, but may do anything.
            method = Unknown(f"{base.path}.{attr}", holds=base.holds)
        return call(walk, method, args, node, attr)
    if isinstance(base, Lib):
        return call(walk, library(f"{base.name}.{attr}"), args, node, attr)
    if isinstance(base, Instance):
        found = base.attrs.get(attr) or base.cls.find(attr)
        if attr == "forward" and base.model is not None and _merely_computes(walk, found):
            return forward(walk, base.model, args, node)
        if found is not None:
            return call(walk, get_attribute(walk, base, attr), args, node, attr)
        if attr == "__call__":
            return _call_instance(walk, base, args, node)
        handled = methods.call_inherited(walk, base, attr, args, node)
        if handled is not None:
            return handled
        if base.cls.outside_bases():
            modes.doubt(attr, parts([base]))
        return call(walk, infer(walk, attr, f"{base.name}.{attr}"), args, node, attr)
    if isinstance(base, ClassDef):
        found = base.find(attr)
        return (
            call(walk, found, args, node, attr) if found is not None else Unknown(f"{base.qualname}.{attr}()")
        )
    if isinstance(base, (Seq, Map)):
        if isinstance(base, Map) and attr == "setdefault":
            _spare(walk, base, args)
        return call_collection(base, attr, args, unsure=bool(walk.unsure))
    if isinstance(base, Engine):
        return call_engine(walk, base, attr, args, node)
    handled = methods.call_known(walk, base, attr, args, node)
    if handled is not None:
        return handled
    return call(walk, get_attribute(walk, base, attr), args, node, attr)


def call_super(walk: Walk, attr: str, args: Arguments, node: ast.Call) -> Value:
    """`super().method(...)`: the method of a base in this file, or one that cannot be seen."""
    owner = walk.frame.owner
    if isinstance(owner, Func) and isinstance(owner.bound, Instance):
        instance = owner.bound
        for base in _defining(instance.cls, owner).bases:
            found = base.find(attr) if isinstance(base, ClassDef) else None
            if isinstance(found, Func):
                return call_function(walk, found.of(instance), args, node)
        if attr != "__init__" and instance.cls.outside_bases():
            return methods.call_inherited(walk, instance, attr, args, node) or NONE
    return Unknown(f"super().{attr}()")


def _defining(cls: ClassDef, method: Func) -> ClassDef:
    for candidate in _lineage(cls):
        found = candidate.attrs.get(method.node.name) if not isinstance(method.node, ast.Lambda) else None
        if isinstance(found, Func) and found.node is method.node:
            return candidate
    return cls


def _lineage(cls: ClassDef) -> list[ClassDef]:
    lineage = [cls]
    for base in cls.bases:
        if isinstance(base, ClassDef) and base is not cls:
            lineage += _lineage(base)
    return lineage


def is_module(cls: ClassDef) -> bool:
    """Whether the class is a torch module, by its bases."""
    return any(
        name.endswith(("nn.Module", "LightningModule", "PreTrainedModel", "nn.Sequential"))
        or name == "Module"
        for name in cls.outside_bases()
    )


def instantiate(walk: Walk, cls: ClassDef, args: Arguments, node: ast.AST) -> Value:
    actor = own_optimizer(walk, cls, args, node) or own_schedule(walk, cls, args, node)
    if actor is not None:
        return actor
    name = cls.node.name
    instance = Instance(cls, name[0].lower() + name[1:], given=None if args.partial else args.all())
    if is_module(cls):
        held = models_in(args.all()) or NOTHING
        # `model = ModelWithLoss(model)` is trained as the model that it is put around.
        around = held and role_of(walk.survey, walk.assigning.rpartition(".")[2]) == "model"
        if words.CRITERION_NAME.search(name) and cls.find("forward") is not None and not around:
            return Criterion(mean=None)
        layers = layers_of_class(walk.survey, cls.node)
        keys = frozenset({walk.made(name, node)}) | held
        instance.model = Model(keys, name, instance.attrs, Mode(True), layers)
    initialise = cls.find("__init__")
    if isinstance(initialise, Func):
        handed = any(isinstance(part, ActorRef) for part in parts(args.all()))
        quiet = instance.model is not None and not handed and not walk.can(initialise.node) & Can.ACT
        if not quiet:
            call_function(walk, initialise.of(instance), args, node)
    elif cls.outside_bases() or not args.all():
        pass
    else:
        _fill_fields(cls, instance, args)
    return instance.model if instance.model is not None and not _acts(walk, cls) else instance


def _fill_fields(cls: ClassDef, instance: Instance, args: Arguments) -> None:
    """The fields of a dataclass, in the order of its annotations."""
    fields = [
        s.target.id for s in cls.node.body if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)
    ]
    instance.attrs.update(zip(fields, args.positional, strict=False))
    instance.attrs.update(args.keywords)


def _acts(walk: Walk, cls: ClassDef) -> bool:
    """Whether a module class does more than compute: it holds or drives optimizers."""
    return any(
        bool(walk.can(member.node) & (Can.ACT | Can.BACKWARD | Can.STEP))
        for member in cls.attrs.values()
        if isinstance(member, Func)
    )


def _merely_computes(walk: Walk, method: Value | None) -> bool:
    """Whether `self.forward(x)` is what `self(x)` is: one forward of the whole, not of each of its parts."""
    return isinstance(method, Func) and not without_gradients(method) and not walk.can(method.node) & Can.ACT


def _spare(walk: Walk, base: Map, args: Arguments) -> None:
    """`settings.setdefault("schedule", StepLR(...))` where there is one already: nobody needs the other."""
    key, usual = args.get(0, "key"), args.get(1, "default")
    missing = isinstance(key, Const) and key.value not in base.items
    if isinstance(usual, ActorRef) and not missing:
        walk.recorder.escapes(usual.id)


def _call_instance(walk: Walk, instance: Instance, args: Arguments, node: ast.Call) -> Value:
    method = instance.cls.find("__call__")
    if isinstance(method, Func):
        return call_function(walk, method.of(instance), args, node)
    if instance.model is not None:
        _act_in_forward(walk, instance, args, node)
        return forward(walk, instance.model, args, node)
    if instance.cls.outside_bases():  # `self("begin_validate")`
        modes.doubt("__call__", parts([instance]))
    return Unknown(f"{instance.name}()")


def _act_in_forward(walk: Walk, instance: Instance, args: Arguments, node: ast.Call) -> None:
    """A forward that clears gradients, say, does so whenever the model is called."""
    forward = instance.cls.find("forward")
    if isinstance(forward, Func) and walk.can(forward.node) & Can.ACT:
        call_function(walk, forward.of(instance), args, node)


def call_function(walk: Walk, func: Func, args: Arguments, node: ast.AST) -> Value:
    walk.reached.add(func.node)
    path = f"{func.qualname}()"
    if func.node in walk.active or len(walk.active) > DEEPEST_CALL:
        return Unknown(path)
    if not isinstance(func.node, ast.Lambda) and is_left_open(func.node):
        return Unknown(path)
    acts = bool(walk.can(func.node) & Can.ACT) and not _is_builder(walk, func.node)
    if not acts and walk.summarising >= DEEPEST_SUMMARY:
        return Unknown(path)
    frame = Frame(func.qualname, func.frame, owner=func)
    bind_parameters(walk, func, args, frame)
    outer, walk.frame = walk.frame, frame
    quiet = without_gradients(func)
    perhaps = any(not _KEEPS_GRADIENTS.search(name) for name in func.decorators)
    walk.no_grad += quiet
    walk.perhaps_no_grad += perhaps
    walk.active.append(func.node)
    walk.calls.append((None if models_in(args.all()) else func.node, node))
    walk.callers.append(outer)
    try:
        return _run(walk, _body(func.node), path, acts=acts)
    finally:
        walk.active.pop()
        walk.calls.pop()
        walk.callers.pop()
        walk.no_grad -= quiet
        walk.perhaps_no_grad -= perhaps
        walk.frame = outer


def _is_builder(walk: Walk, node: FunctionNode | ast.Lambda) -> bool:
    return not isinstance(node, ast.Lambda) and walk.survey.merely_builds(node)


def without_gradients(func: Func) -> bool:
    return any(name.rsplit(".", 1)[-1] in _NO_GRAD for name in func.decorators)


def _body(node: FunctionNode | ast.Lambda) -> list[ast.stmt]:
    return [ast.Return(node.body)] if isinstance(node, ast.Lambda) else node.body


def _run(walk: Walk, body: list[ast.stmt], path: str, *, acts: bool) -> Value:
    if acts and not walk.summarising:
        try:
            walk.execute(walk, body)
        except ReturnValue as returned:
            return returned.value
        return NONE
    walk.summarising += 1
    known = len(walk.recorder.actors)
    walk.returned.append([])
    try:
        walk.execute(walk, body)
    except ReturnValue:
        pass
    except Stop:
        if not walk.returned[-1]:  # else it raises only where it has not returned
            raise
    finally:
        walk.summarising -= 1
        values = walk.returned.pop()
    if not values:
        return NONE
    result = values[0]
    for other in values[1:]:
        result = joined(walk, result, other, path, known)
    return result


def bind_parameters(walk: Walk, func: Func, args: Arguments, frame: Frame) -> None:
    spec = func.node.args
    names = [a.arg for a in (*spec.posonlyargs, *spec.args)]
    given = list(args.positional)
    if func.bound is not None and names:
        given.insert(0, func.bound)
    frame.vars.update(zip(names, given, strict=False))
    if spec.vararg:
        frame.vars[spec.vararg.arg] = Seq(given[len(names) :])
    every = [*names, *(a.arg for a in spec.kwonlyargs)]
    frame.vars.update({name: value for name, value in args.keywords.items() if name in every})
    for name in every:
        value = frame.vars.get(name)
        if isinstance(value, Unknown) and value.path.endswith("()") and not value.holds:
            frame.vars[name] = taken_for(walk, name, value)
    if spec.kwarg:
        rest: dict[object, Value] = {
            name: value for name, value in args.keywords.items() if name not in every
        }
        frame.vars[spec.kwarg.arg] = Map(rest)
    defaults: dict[str, ast.expr | None] = dict(zip(reversed(names), reversed(spec.defaults), strict=False))
    defaults.update({a.arg: d for a, d in zip(spec.kwonlyargs, spec.kw_defaults, strict=True)})
    for name in every:
        if name not in frame.vars:
            default = None if args.partial else _default(defaults.get(name))
            frame.vars[name] = default or infer(walk, name, name)
    learn_layers(walk, func.frame, [*spec.posonlyargs, *spec.args, *spec.kwonlyargs], frame.vars)


def _default(node: ast.expr | None) -> Value | None:
    if not isinstance(node, ast.Constant):
        return None
    return Num(node.value) if type(node.value) is int else Const(node.value)


def receive_parameters(walk: Walk, func: Func, frame: Frame) -> None:
    """Bind the parameters of a root: nobody calls it in sight, so nothing is known but the names."""
    bind_parameters(walk, func, Arguments(partial=True), frame)
