"""Calls that cannot be followed, and what they might do to the actors they are given."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from functools import lru_cache

from gradclinic.facts import ActorKind, EventKind
from gradclinic.static import modes, words
from gradclinic.static.abilities import Can
from gradclinic.static.averages import averages
from gradclinic.static.bystanders import leaves_alone
from gradclinic.static.conditions import OF_GRADIENTS, name_of
from gradclinic.static.elsewhere import class_elsewhere
from gradclinic.static.gradients import clip
from gradclinic.static.held import models_among, models_in, optimizers_among, optimizers_in, parts
from gradclinic.static.hidden_backwards import may_go_backward
from gradclinic.static.own_losses import is_mean
from gradclinic.static.recorder import UNLIKELY
from gradclinic.static.roles import named, role_of
from gradclinic.static.scales import note_scale
from gradclinic.static.syntax import is_count, nodes_in
from gradclinic.static.values import (
    NOTHING,
    Accelerator,
    ActorRef,
    Bound,
    Const,
    Criterion,
    Engine,
    Func,
    Instance,
    Keys,
    Lib,
    Model,
    Num,
    Params,
    Partial,
    Range,
    Stream,
    Tensor,
    Unknown,
    Value,
)  # fmt: skip
from gradclinic.static.walk import Arguments, Walk

_CLIPS = ("clip_grad_norm_", "clip_grad_norm", "clip_grad_value_")


def open_tape(walk: Walk, node: ast.AST, *, optimizers: Keys = NOTHING, models: Keys | None = None) -> None:
    """Say that anything may have happened here, to these optimizers or to any."""
    walk.emit(EventKind.OPAQUE, node, optimizers=optimizers, models=models)


def open_given(walk: Walk, name: str, node: ast.AST, optimizers: Keys, values: Iterable[Value]) -> None:
    """The same for a function that was given them among `values`: with a loss it may train by that."""
    if not words.harmless(name):
        may_train = words.MAY_TRAIN.search(name) or any(isinstance(value, Tensor) for value in values)
        attrs = {} if may_train else {"prepares": True}
        walk.emit(EventKind.OPAQUE, node, optimizers=optimizers, models=None, attrs=attrs)


def _open_perhaps(
    walk: Walk, name: str, reached: list[Value], node: ast.AST, models: Keys | None = None
) -> None:
    """The same for a function that was given no optimizer: only its name could tell that it trains.

    One that says nothing of the kind hides a backward at most where none is in sight, unless it is called for
    what it does to a model: `refresh(model)` may clear.
    """
    models_given = tuple(part for part in reached if isinstance(part, Model))
    weights_given = any(isinstance(part, Params) for part in reached) and "clip" not in name.lower()
    # `model = refresh(model)` is called for the same, where it is called for every batch.
    again = bool(walk.batches) and called_again(walk, models_given, walk.assigning) is not None
    acts = (bool(models_given) or weights_given) and (walk.for_effect is node or again)
    attrs = {} if acts or words.MAY_TRAIN.search(name) else {UNLIKELY: True}
    walk.emit(EventKind.OPAQUE, node, models=models, attrs=attrs)


def call_outside(
    walk: Walk,
    func: Value,
    name: str,
    args: Arguments,
    node: ast.Call,
    *,
    origin: str = "",
    ran: Model | None = None,
) -> Value:
    """A function of another file, imported as `origin`, or one that came as a parameter.

    `ran` is a model that it is known to run, and to leave in its mode.
    """
    values = args.all()
    holds = func.holds if isinstance(func, Unknown) else ()
    if may_go_backward(walk, name, values, node):
        walk.emit(EventKind.OPAQUE, node, models=None, attrs={UNLIKELY: True})
    if not holds and not _says_something(name) and _are_plain(values):
        return _result(walk, func, (), NOTHING)
    if words.FETCH_FUNCTION.match(name):
        walk.emit(EventKind.BATCH, node)
        return Unknown(f"{name_of(func)}()")
    known = parts(values)
    for part in known:
        if isinstance(part, Engine) and name != "attach":
            part.unsure = True
    if name == "master_params":
        return Params(optimizers=optimizers_among(known))
    if words.GOES_OVER.search(name) and values and isinstance(values[0], (Range, Stream)):
        return values[0]
    made = _made(walk, name, known, node)
    if made is not None:
        return made
    if words.AVERAGES_GRADIENTS.search(name):
        walk.emit(EventKind.GRAD_WRITE, node, models=models_among(known) or None)
    reached = parts([*values, *holds]) if holds else known
    if (name in _CLIPS or words.CLIP_FUNCTION.match(name)) and clips_merely(reached):
        return clip_parameters(walk, args, node)
    if _is_told(func, reached, words.ADDS_UP):
        if any(isinstance(value, Tensor) and value.loss for value in values):
            walk.emit(EventKind.OPAQUE, node, models=None, attrs={UNLIKELY: True})
    elif not (_shows_only(func, reached) or _stands_by(walk, origin, reached) or averages(func, reached)):
        before = len(walk.recorder.drafts)
        _open_where_needed(walk, name, values, reached, node)
        note_scale(walk, [*values, *holds], node, before)
    modes.doubt(name, (part for part in reached if part is not ran))
    if words.TOGGLES_GRADIENTS.search(name) and any(isinstance(value, Model) for value in reached):
        walk.perhaps_no_grad += 1  # for all that follows: nobody says when it ends
    return _outcome(walk, func, name, args, known, node, origin)


def _stands_by(walk: Walk, origin: str, reached: list[Value]) -> bool:
    """Whether its own file shows that it trains nothing, and it is given nothing else that might."""
    if not origin or any(isinstance(part, (Func, Bound, Partial, Instance, Accelerator)) for part in reached):
        return False
    return leaves_alone(origin, walk.frame.module.path or walk.path)


def clips_merely(reached: list[Value]) -> bool:
    """A project's own clip of that name may unscale first, if it is given what it takes."""
    return any(isinstance(part, Params) for part in reached) and not any(
        isinstance(part, (ActorRef, Accelerator)) for part in reached
    )


def clip_parameters(walk: Walk, args: Arguments, node: ast.Call) -> Value:
    """`clip_grad_norm_` of torch, or a project's own of that name."""
    clips = args.keywords.get("clip_grad")
    if not isinstance(clips, Const) or clips.value is not False:
        clip(walk, optimizers_in(args.all()), models_in(args.all()), node)
    return Unknown(OF_GRADIENTS)


def _shows_only(func: Value, reached: list[Value]) -> bool:
    """`meters.update(loss=loss)`: what keeps records is given losses in order to show them."""
    owner, _, method = name_of(func).rpartition(".")
    if method == "step" and words.NOT_AN_OPTIMIZER.search(owner.rpartition(".")[2]):
        return True
    return _is_told(func, reached, words.KEEPS_RECORDS)


def _is_told(func: Value, reached: list[Value], owners: words.Pattern) -> bool:
    """Whether a method of such an owner is given nothing to train, nor asked for anything like it."""
    owner, _, method = name_of(func).rpartition(".")
    if not isinstance(func, Unknown) or words.LEARNS_FROM.search(method):
        return False
    keeps = owners.search(owner.rpartition(".")[2]) is not None
    return keeps and not any(isinstance(part, (ActorRef, Accelerator, Model, Params)) for part in reached)


@lru_cache(maxsize=4096)
def _says_something(name: str) -> bool:
    """Whether a call may do or give something by its name alone, whatever it is given."""
    return name in ("master_params", "deepcopy") or any(
        pattern.search(name)
        for pattern in (
            words.FETCH_FUNCTION,
            words.AVERAGES_GRADIENTS,
            words.FILLS_GRADIENTS,
            words.SCALER_NAME,
            words.LOSS_FUNCTION,
            words.CRITERION_NAME,
            words.MODEL_FACTORY,
        )
    )


def _are_plain(values: list[Value]) -> bool:
    """Whether none of them is or holds anything that a call could act on."""
    for value in values:
        kind = type(value)
        if kind is Unknown:
            if value.holds:  # type: ignore[attr-defined]
                return False
        elif kind is not Const and kind is not Num and kind is not Lib:
            return False
    return True


def _open_where_needed(
    walk: Walk, name: str, values: list[Value], reached: list[Value], node: ast.Call
) -> None:
    optimizers = optimizers_among(reached)
    constructs = name[:1].isupper()
    if _makes_ready(walk, name, node) and (optimizers or models_among(reached)):
        open_tape(walk, node, optimizers=optimizers, models=models_among(reached))
    elif optimizers:
        if not constructs:
            open_given(walk, name, node, optimizers, values)
    elif any(isinstance(part, (ActorRef, Accelerator)) for part in reached):
        if not constructs and not words.harmless(name):
            open_tape(walk, node)
    elif words.FILLS_GRADIENTS.search(name) or any(map(_goes_backward, reached)):
        open_tape(walk, node)
    elif any(isinstance(value, Tensor) and value.loss for value in values):
        if not words.harmless_for_model(name):
            _open_perhaps(walk, name, reached, node)
    else:
        models = models_among(reached)
        if models and not constructs and not words.harmless_for_model(name):
            _open_perhaps(walk, name, reached, node, models)
        elif any(isinstance(value, Tensor) and value.models for value in values) and (
            # `features[label].append(outputs)`: whatever has such a method keeps what it is given.
            (walk.for_effect is node and name != "append")
            or (words.MAY_TRAIN.search(name) and not words.harmless(name))
        ):
            # `judge(outputs, y)`, called for what it does: it may make the loss and go backward.
            walk.emit(EventKind.OPAQUE, node, models=None, attrs={UNLIKELY: True})


def _makes_ready(walk: Walk, name: str, node: ast.Call) -> bool:
    """Whether it may clear gradients for the batch; what is done every so often beside the steps does not."""
    if not walk.batches or walk.for_effect is not node or not words.makes_ready(name):
        return False
    return not walk.loops or not any(
        isinstance(part, ast.If)
        and not walk.can(part) & Can.STEP
        and any(map(is_count, nodes_in(part.test)))
        and node in nodes_in(part)
        for part in nodes_in(walk.loops[-1][2])
    )


def _goes_backward(part: Value) -> bool:
    """`guarded(loss.backward)`: who is given that may well call it."""
    return isinstance(part, Bound) and part.attr == "backward"


def _made(walk: Walk, name: str, known: list[Value], node: ast.Call) -> Value | None:
    """What an unseen constructor or factory makes, told by its name and by what it is given."""
    optimizers = optimizers_among(known)
    label = walk.assigning.rsplit(".", 1)[-1]
    if (
        optimizers
        and (words.SCHEDULE_NAME.search(name) or name.endswith("LR"))
        and "step" not in name.lower()
        and not _gives_back(walk, name, label, optimizers)
    ):
        # One that is given another, as a warm-up is, advances it too.
        within = {part.id for part in known if isinstance(part, ActorRef) and part.kind is ActorKind.SCHEDULE}
        attrs = {"torch": False, "kind": name}
        return build(walk, ActorKind.SCHEDULE, name, node, of=optimizers | within, attrs=attrs)
    if len(optimizers) == 1 and name[:1].isupper() and words.OPTIMIZER_WRAPPER.search(name):
        for part in known:
            if isinstance(part, ActorRef) and part.kind is ActorKind.OPTIMIZER:
                return part  # If it is given the parameters of one only, it makes another.
    given_parameters = any(isinstance(part, Params) for part in known)
    if (
        given_parameters
        and not optimizers
        and (words.OPTIMIZER_CLASS.search(name) or role_of(walk.survey, label) == "optimizer")
    ):
        return build(walk, ActorKind.OPTIMIZER, name, node, of=models_among(known) or NOTHING)
    if words.OPTIMIZER_FACTORY.search(name) and models_among(known):
        return build(walk, ActorKind.OPTIMIZER, name, node, of=models_among(known) or NOTHING)
    if (
        words.SCALER_NAME.search(name)
        and name[:1].isupper()
        and "Scaler" in name
        and name not in words.DATA_SCALERS
    ):
        return build(walk, ActorKind.SCALER, name, node)
    return None


def _gives_back(walk: Walk, name: str, label: str, optimizers: Keys) -> bool:
    """`optimizer = lr_scheduler(optimizer, epoch)` sets the rate of what it was given."""
    names = {walk.recorder.known(id).name.rpartition(".")[2] for id in optimizers}
    return name.islower() and (label in names or label in ("optimizer", "optim", "opt"))


def build(
    walk: Walk,
    kind: ActorKind,
    type: str,
    node: ast.AST,
    *,
    of: Keys = NOTHING,
    attrs: Mapping[str, object] | None = None,
) -> ActorRef:
    """A new actor and its BUILD event."""
    where = walk.at(node)
    id = walk.recorder.actor(kind, walk.assigning or type, type=type, built=where, of=of, attrs=attrs)
    concerned = frozenset(i for i in of if kind is ActorKind.SCHEDULE and i.startswith(ActorKind.OPTIMIZER))
    walk.emit(EventKind.BUILD, node, actor=id, optimizers=concerned)
    return ActorRef(id, kind)


def _outcome(
    walk: Walk, func: Value, name: str, args: Arguments, known: list[Value], node: ast.Call, origin: str
) -> Value:
    """What an unseen function gives back: tensors in, a tensor out; a model in a coat is that model."""
    values = args.all()
    tensors = [value for value in values if isinstance(value, Tensor)]
    if words.LOSS_FUNCTION.search(name) and not name[:1].isupper():
        if not tensors and words.CRITERION_NAME.search(walk.assigning.rpartition(".")[2]):
            return Criterion()  # `criterion = get_loss(config)`, which averages as any that is out of sight
        reached: Keys | None = NOTHING
        for tensor in tensors:
            reached = None if tensor.models is None or reached is None else reached | tensor.models
        walk.emit(EventKind.LOSS, node, attrs={"graph": not walk.no_grad})
        mean = is_mean(walk, origin, node)
        return Tensor(reached if tensors and reached else None, scaled=False if mean else None, loss=True)
    if words.CRITERION_NAME.search(name) and name[:1].isupper():
        return Criterion(mean=is_mean(walk, origin, node))
    if tensors and all(tensor.models is not None for tensor in tensors):
        reached = frozenset().union(*(tensor.models or NOTHING for tensor in tensors))
        # `logits = predict(head, features)`: what is given beside tensors is applied to them.
        if reached and not walk.no_grad:
            reached = reached.union(*(part.whole() for part in known if isinstance(part, Model)))
        if reached:
            return Tensor(reached, scaled=None, loss=any(tensor.loss for tensor in tensors))
    if name == "deepcopy" and values and isinstance(values[0], Model):
        return Model(frozenset({walk.made("copy", node)}), walk.assigning or "copy")
    if optimizers_among(known):
        return returned(walk, func, args)
    models = [value for value in values if isinstance(value, Model)]
    if len(models) == 1 and words.WRAPS_MODEL.search(name):
        return models[0]
    if models and name[:1].isupper():
        keys = frozenset({walk.made(name, node)}).union(*(model.whole() for model in models))
        return Model(keys, walk.assigning or name)
    made_of_data = tensors and _is_of_models(walk, origin)  # `net = gtnet(adjacency)`
    if not models and (made_of_data or words.MODEL_FACTORY.search(name)):
        return Model(frozenset({walk.made(name, node)}), walk.assigning or name)
    return returned(walk, func, args)


def _is_of_models(walk: Walk, origin: str) -> bool:
    """Whether it is a class of the project that goes forward."""
    seen = class_elsewhere(origin, walk.frame.module.path or walk.path) if origin else None
    return seen is not None and "forward" in seen.methods


def returned(walk: Walk, func: Value, args: Arguments) -> Value:
    """What comes back under the name it went in by is taken for the same thing: `model = wrap(model)`."""
    values = args.all()
    held = tuple(part for part in parts(values) if isinstance(part, (ActorRef, Model)))
    if any(isinstance(value, Accelerator) for value in values):
        for value in held:
            if isinstance(value, ActorRef):
                value.prepared = True
    again = called_again(walk, held, walk.assigning)
    if again is not None:
        return again
    if any(isinstance(part, Tensor) for part in values):
        return Unknown(_result_path(walk, func), holds=held)
    return _result(walk, func, held, models_in(values))


def _result(walk: Walk, func: Value, held: tuple[Value, ...], models: Keys | None) -> Value:
    """What the name it is given says of a result of which nothing else is known."""
    path = _result_path(walk, func)
    made = named(walk, walk.assigning, path, models) if walk.assigning else None
    return made if made is not None else Unknown(path, holds=held)


def _result_path(walk: Walk, func: Value) -> str:
    return f"{walk.assigning}={name_of(func)}()" if walk.assigning else f"{name_of(func)}()"


def called_again(walk: Walk, held: tuple[Value, ...], label: str) -> Value | None:
    wanted = label.rsplit(".", 1)[-1]
    for value in held if wanted else ():
        name = walk.recorder.known(value.id).name if isinstance(value, ActorRef) else ""
        if isinstance(value, Model):
            name = value.name
        if name.rsplit(".", 1)[-1] == wanted:
            return value
    return None
