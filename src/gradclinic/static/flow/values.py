"""Abstract tensors and the modules that make them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field, fields
from operator import attrgetter
from typing import TypeAlias

from gradclinic.facts import CutKind, Location, Op
from gradclinic.frozen import frozen, record
from gradclinic.static.values import Map, Seq, Unknown, Value

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
    of_loss: bool = False
    """It was what a loss of torch gave: there is no other use for its graph than to train by it."""


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
    spared: bool = False
    """On some branch it was let go of its graph: `if torch.is_tensor(value): value = value.item()`."""
    cut: CutAt | None = None
    """Why it carries no graph, where it should."""
    terms: tuple[CutAt, ...] = ()
    """Summands of it that lost theirs."""
    paths: tuple[CutAt, ...] = ()
    """Cuts behind something it was computed from."""
    scalar: bool = False
    losses: Ids = NO_IDS
    """The loss calls it is a sum of; those that are not torch's have numbers below zero."""
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
    filled: object = None
    """The number that such a place is full of, or NOTHING."""
    unchecked: Location | None = None
    """The `autograd.grad(allow_unused=True)` it came from: it may be None."""
    copied: bool = False
    """It may be a copy of what the last operation returned: whoever writes to it leaves that alone."""


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
class Lists(Map):
    """`defaultdict(list)`: asked for a key that it lacks, it has a list there."""


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
    hooked: bool = False
    """What it gives was changed in a way that is not followed."""


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
class Forms(Value):
    """What a function gives, a tensor or a tuple, or tuples of different lengths: the taker knows which."""

    options: list[Value]


@record
class Index(Value):
    """A loop counter: good for picking from a list, never for deciding a condition."""

    value: int


NOTHING = "<nothing>"
"""What a tensor without any elements is full of."""

BUILT = "<built>"
"""What an Unknown holds the models by that it may be."""

STEPS = "<steps>"
"""What an optimizer holds the weights by that it changes."""

WITHIN = "<within>"
"""What an Unknown that was found in a model holds that model by."""

IDENTITY = Layer("", 0, trainable=False)
"""A layer that may be missing."""

SOME_LAYER = "torch.nn.<layer>"
"""The path of a class of layers that a setting chooses."""

PERHAPS_A_GRAPH = Flow(known=False)
"""One of its own, if any."""

SHADOW = Flow(known=False, anew=False)
"""Any graph at all: held by an Unknown that may carry one."""


def shadowed(path: str) -> Unknown:
    return Unknown(path, holds=(SHADOW,))


def made_of(path: str, *values: Value) -> Unknown:
    """What became of `values` out of sight: it may carry the graphs that they carry."""
    shade = shade_of(values)
    return Unknown(path, holds=(shade,) if shade is not None else ())


def found_in(source: Value, made: Unknown) -> Unknown:
    """What came out of a part of a model is a part of it too."""
    if isinstance(source, Unknown) and WITHIN in source.attrs:
        made.attrs[WITHIN] = source.attrs[WITHIN]
    return made


def shade_of(values: Iterable[Value], depth: int = 6) -> Flow | None:
    """All graphs that `values` may carry, as one that is not known; None if they carry none."""
    found: list[Flow] = []
    for value in values:
        if isinstance(value, Flow):
            found += [value] if value.grad is not False else []
        elif isinstance(value, (Unknown, Seq, Map, Forms)):
            held = value.holds if isinstance(value, Unknown) else _held(value)
            shade = shade_of(held, depth - 1) if depth else SHADOW  # for it may hold itself
            found += [shade] if shade is not None else []
    if len(found) < 2:
        return found[0] if found else None
    nodes = NO_IDS.union(*(flow.nodes for flow in found))
    return Flow(nodes=nodes, known=False, anew=all(flow.anew for flow in found))


def carries(value: Value, depth: int = 6) -> bool:
    """Whether it may carry a graph that is not known."""
    if isinstance(value, Unknown):
        return bool(value.holds)
    if isinstance(value, Flow):
        return not value.known or value.grad is None
    if isinstance(value, (Seq, Map, Forms)):  # which may hold itself
        return not depth or any(carries(item, depth - 1) for item in _held(value))
    return False


def _held(value: Seq | Map | Forms) -> Iterable[Value]:
    if isinstance(value, Forms):
        return value.options
    return value.items if isinstance(value, Seq) else value.items.values()


def as_tensor(value: Value) -> Value:
    """What it is, given that it is taken for a tensor."""
    if not isinstance(value, Forms):
        return value
    tensor = next((option for option in value.options if isinstance(option, Flow)), None)
    return tensor or made_of("<tuple>", *value.options)


def unpacked(value: Value, count: int) -> Value:
    """What it is, given that it is taken apart into so many."""
    options = value.options if isinstance(value, Forms) else [value]
    fitting = [option for option in options if isinstance(option, Seq) and len(option.items) == count]
    return fitting[0] if fitting else as_tensor(value)


def flows_in(value: Value | None, depth: int = 3) -> list[Flow]:
    if isinstance(value, Flow):
        return [value]
    if isinstance(value, Forms):
        return flows_in(as_tensor(value)) or flows_in(value.options[0], depth)
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
