"""Abstract tensors and the modules that make them."""

from __future__ import annotations

import re
from dataclasses import field, fields
from operator import attrgetter
from typing import TypeAlias

from gradclinic.facts import CutKind, Location, Op
from gradclinic.frozen import frozen, record
from gradclinic.static.values import Const, Instance, Map, Seq, Unknown, Value, same

Ids: TypeAlias = frozenset[int]
NO_IDS: Ids = frozenset()
MOST_OPS = 6
MOST_ALTERNATIVES = 4


@frozen
class CutAt:
    """A place where a value that carried a graph lost it."""

    kind: CutKind
    where: Location
    nodes: Ids
    """Operations of the graph that was lost."""
    owners: Ids
    """Layers whose parameters lie behind it."""
    scalar: bool
    """It was a whole loss or a term of one, not a tensor on the way."""
    silenced: bool = False
    sure: bool = True
    """False when it is not known whether there was a graph to lose."""


@record
class Flow(Value):
    """A tensor, or a number or array taken from one. Only `requires_grad_` changes it once it is made."""

    ops: tuple[Op, ...] = ()
    """What made it, last first, without mere changes of shape; ends where the trail is lost."""
    nodes: Ids = NO_IDS
    """The operations a backward from here goes through."""
    owners: Ids = NO_IDS
    """The layers whose parameters such a backward reaches."""
    grad: bool | None = None
    """Whether it carries a graph; None when that is not known."""
    known: bool = True
    """Nothing but `nodes` can be in its graph."""
    anew: bool = True
    """What else is in its graph was made by calls that are among `nodes`: only their results share it."""
    certain: bool = True
    """All of `nodes` are in its graph, whatever branch was taken."""
    cut: CutAt | None = None
    """Why it carries no graph, where it should."""
    terms: tuple[CutAt, ...] = ()
    """Summands of it that lost theirs."""
    paths: tuple[CutAt, ...] = ()
    """Cuts behind something it was computed from."""
    scalar: bool = False
    losses: Ids = NO_IDS
    """The loss calls it is a sum of."""
    divided: bool = False
    form: str = "tensor"
    """`number` after item(), `array` after numpy()."""
    axes: int | None = None
    batched: bool = False
    """Its first axis is surely the batch."""
    reshaped: bool = False
    """Its shape was changed since the last operation."""
    padded: object = None
    """The value that fills up its rows."""
    choices: tuple[tuple[Op, ...], ...] = ()
    """What made it if the model is this one or that, where it is chosen among several."""
    blank: bool = False
    """Nothing but a place to write to, as `torch.zeros(...)`."""
    unchecked: Location | None = None
    """The `autograd.grad(allow_unused=True)` it came from: it may be None."""


_FIELDS = attrgetter(*(one.name for one in fields(Flow)))


def changed(flow: Flow, **changes: object) -> Flow:
    """As `dataclasses.replace`, which takes longer than all else that is done to a tensor."""
    made = Flow(*_FIELDS(flow))
    for name, value in changes.items():
        setattr(made, name, value)
    return made


@record
class Alike(Seq):
    """Any number of values, of which one stands for all."""


@record
class Layer(Value):
    """A module of torch.nn: what calling it does."""

    op: str
    id: int
    trainable: bool
    returns: str = ""
    """`pair` or `state` for recurrent layers, which return more than one tensor."""
    dim: int | None = None
    implicit_dim: bool = False
    where: Location | None = None


@record
class Chain(Value):
    """`nn.Sequential`."""

    parts: list[Value]


@record
class Listed(Value):
    """`nn.ModuleList` and `nn.ModuleDict` of known or unknown length."""

    parts: list[Value]


@record
class Loss(Value):
    """A torch loss, as a module or a function, with what it was built with."""

    name: str
    settings: dict[str, Value] = field(default_factory=dict)
    where: Location | None = None
    """Where it was built."""


@record
class Weights(Value):
    """`model.parameters()`, or one of them."""

    owners: Ids = NO_IDS
    raw: bool = False
    """Their `.data`, which no graph knows of."""


@record
class Either(Value):
    """What two branches left in one name, where both can be called."""

    options: list[Value]


@record
class Index(Value):
    """A loop counter: good for picking from a list, never for deciding a condition."""

    value: int


BUILT = "<built>"
"""What an Unknown holds the models by that it may be."""

IDENTITY = Layer("", 0, trainable=False)
"""A layer that may be missing."""

SHADOW = Const("a graph made out of sight")
"""Held by an Unknown that may carry a graph."""


def shadowed(path: str) -> Unknown:
    return Unknown(path, holds=(SHADOW,))


def carries(value: Value, depth: int = 6) -> bool:
    """Whether it may carry a graph that is not known."""
    if isinstance(value, Unknown):
        return bool(value.holds)
    if isinstance(value, Flow):
        return not value.known or value.grad is None
    if isinstance(value, (Seq, Map)):  # which may hold itself
        held = value.items if isinstance(value, Seq) else value.items.values()
        return not depth or any(carries(item, depth - 1) for item in held)
    return False


def flows_in(value: Value | None, depth: int = 3) -> list[Flow]:
    if isinstance(value, Flow):
        return [value]
    if isinstance(value, Seq) and depth:
        return [flow for item in value.items for flow in flows_in(item, depth - 1)]
    if isinstance(value, Map) and depth:
        return [flow for item in value.items.values() for flow in flows_in(item, depth - 1)]
    return []


def shared_ops(flows: list[Flow]) -> tuple[Op, ...]:
    """The trail of all of them, if they were made alike."""
    trails = [flow.ops for flow in flows]
    lasts = {trail[0].name if trail else "" for trail in trails}
    if len(lasts) == 1 and "" not in lasts:
        return trails[0]
    if lasts == {"softmax", "log_softmax"}:
        # Normalised all of them, and the logarithm does least harm in any loss.
        return next(trail for trail in trails if trail[0].name == "log_softmax")
    return ()


def join(one: Value | None, other: Value | None, path: str) -> Value:
    """One value for what two branches left in a name."""
    if one is None or other is None:
        # Defined on one branch only: if it is used later, that branch was taken.
        return one or other or Unknown(path)
    if same(one, other):
        return one
    if isinstance(one, Flow) and isinstance(other, Flow):
        return _joined(one, other)
    module = _model_and_its_copy(one, other)
    if module is not None:
        return module
    if isinstance(one, Flow) or isinstance(other, Flow):
        flow, plain = (one, other) if isinstance(one, Flow) else (other, one)
        assert isinstance(flow, Flow)
        if flow.form == "number" and isinstance(plain, Const) and type(plain.value) in (int, float):
            return flow  # Either way a number, and one way it is what was lost.
        return changed(
            flow, ops=(), grad=None, certain=False, cut=None, terms=(), paths=(), losses=NO_IDS,
            known=flow.known and not carries(plain), anew=flow.anew and not carries(plain),
            batched=False, axes=None, padded=None, choices=(),
        )  # fmt: skip
    if isinstance(one, Seq) and isinstance(other, Seq) and len(one.items) == len(other.items):
        return Seq([join(a, b, path) for a, b in zip(one.items, other.items, strict=True)])
    if isinstance(one, Map) and isinstance(other, Map) and one.items.keys() == other.items.keys():
        return Map({key: join(value, other.items[key], path) for key, value in one.items.items()})
    callables = Layer | Chain | Loss | Either | Instance
    if isinstance(one, callables) and isinstance(other, callables):
        options = [*_options(one), *(o for o in _options(other) if o not in _options(one))]
        if len(options) <= MOST_ALTERNATIVES:
            return Either(options)
    if isinstance(one, Weights) and isinstance(other, Weights):
        return Weights(one.owners | other.owners)
    unknown = shadowed(path) if carries(one) or carries(other) else Unknown(path)
    built = [value for side in (one, other) for value in _built(side)]
    if built and len(built) <= MOST_ALTERNATIVES:
        unknown.attrs[BUILT] = Seq(built)
    return unknown


def _built(value: Value) -> list[Value]:
    if isinstance(value, (Chain, Instance)):
        return [value]
    held = value.attrs.get(BUILT) if isinstance(value, Unknown) else None
    return held.items if isinstance(held, Seq) else []


def _model_and_its_copy(one: Value, other: Value) -> Value | None:
    """The model, where one branch builds it and the other loads what a run before has saved of it."""
    for built, loaded in ((one, other), (other, one)):
        if isinstance(built, (Layer, Chain, Instance)):
            if isinstance(loaded, Unknown) and _LOADED.search(loaded.path):
                return built
            if isinstance(loaded, Flow) and loaded.grad is False and not loaded.ops:
                return built  # As a tensor is what `torch.load` gives taken.
    return None


_LOADED = re.compile(r"(^|[._])(load(_checkpoint|_model)?\(\)|(\w+_)?(checkpoint|ckpt)\b)", re.I)


def _options(value: Value) -> list[Value]:
    return value.options if isinstance(value, Either) else [value]


def _lost(flow: Flow, other: Flow) -> list[CutAt]:
    """Summands that lost their graph on this branch and on the other did so too, or are not there at all.

    Who detaches on one branch what trains on the other means to.
    """
    return [
        term
        for term in flow.terms
        if term in other.terms or (term.kind is CutKind.ITEM and not term.nodes <= other.nodes)
    ]


def _joined(one: Flow, other: Flow) -> Flow:
    alike = one.nodes == other.nodes
    return Flow(
        ops=shared_ops([one, other]),
        nodes=one.nodes | other.nodes,
        owners=one.owners | other.owners,
        grad=one.grad if one.grad is other.grad else None,
        known=one.known and other.known,
        anew=one.anew and other.anew,
        certain=one.certain and other.certain and alike,
        cut=one.cut if one.cut and other.cut and one.cut.kind is other.cut.kind else None,
        terms=tuple(dict.fromkeys((*_lost(one, other), *_lost(other, one)))),
        paths=tuple(path for path in one.paths if path in other.paths),
        scalar=one.scalar and other.scalar,
        losses=one.losses | other.losses,
        divided=one.divided or other.divided,
        form=one.form if one.form == other.form else "tensor",
        axes=one.axes if one.axes == other.axes else None,
        batched=one.batched and other.batched,
        reshaped=one.reshaped or other.reshaped,
        padded=one.padded if one.padded == other.padded else None,
        choices=one.choices if one.choices == other.choices else (),
    )
