"""What a name can stand for while a source is walked.

Actors (optimizers, scalers, schedules, models) keep their identity wherever they are passed; tensors keep
what matters of their history: the models they came from and what scaled them. Everything else is
`Unknown`, named by the path that led to it, so that one condition is one condition wherever it is asked.
"""

from __future__ import annotations

import ast
from dataclasses import field, replace
from functools import lru_cache
from typing import Any, TypeAlias

from gradclinic.facts import ActorKind, Location
from gradclinic.frozen import frozen, record

FunctionNode: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
Keys: TypeAlias = frozenset[str]
NOTHING: Keys = frozenset()


@record
class Value:
    """Anything an expression can evaluate to."""


@record
class Unknown(Value):
    path: str
    attrs: dict[str, Value] = field(default_factory=dict)
    holds: tuple[Value, ...] = ()
    """Actors it was given when it was made: its methods may act on them."""


@record
class Const(Value):
    value: Any


@record
class Both(Value):
    """`a and b`, or `a or b` where `either`, of parts not known: decided where a path depends on it."""

    parts: list[Value]
    either: bool


@record
class Num(Value):
    """An integer, known or not, with the units it was made of: `len(loader) * epochs`."""

    value: int | None
    invented: bool = False
    """True for a size the walk chose itself, such as the length of a loader."""
    units: Keys = NOTHING
    ahead: tuple[int, int] | None = None
    """Of a number that a loop counts: the last one that the walk comes to, and the last of all beyond it."""


@record
class Lib(Value):
    """An imported or built-in name, by its full dotted path."""

    name: str


@frozen
class Module:
    """Another file of the project."""

    path: str
    tree: ast.Module
    computes: bool = False
    """It speaks of losses that mind what they are given."""


@lru_cache(maxsize=8192)
def library(name: str) -> Lib:
    """One value for all mentions of a name; nothing about it ever changes."""
    return Lib(name)


@record
class Frame:
    """The variables of one running function, class body or module."""

    qualname: str
    parent: Frame | None = None
    vars: dict[str, Value] = field(default_factory=dict)
    shared: set[str] = field(default_factory=set)
    """Names declared `global` or `nonlocal`."""
    owner: Value | None = None
    """What `super()` refers to."""
    path: str = ""
    """Of a module of the project other than the file that is read."""

    @property
    def module(self) -> Frame:
        """The frame of the module that all this happens in."""
        frame = self
        while frame.parent is not None:
            frame = frame.parent
        return frame


@record
class Func(Value):
    node: FunctionNode | ast.Lambda
    frame: Frame
    qualname: str
    bound: Value | None = None
    decorators: tuple[str, ...] = ()

    def of(self, owner: Value) -> Func:
        """The method as one of `owner`."""
        return Func(self.node, self.frame, self.qualname, owner, self.decorators)


@record
class Engine(Value):
    """Ignite's: it calls `update` for every batch, and each handler at its event."""

    update: Func
    handlers: list[tuple[str, Func]] = field(default_factory=list)
    unsure: bool = False
    """Something else may be called too, or at times that are not known."""


@record
class ClassDef(Value):
    node: ast.ClassDef
    frame: Frame
    qualname: str
    bases: tuple[Value, ...] = ()
    attrs: dict[str, Value] = field(default_factory=dict)

    def find(self, name: str) -> Value | None:
        found = self.attrs.get(name)
        if found is not None:
            return found
        for base in self.bases:
            if isinstance(base, ClassDef) and base is not self:
                found = base.find(name)
                if found is not None:
                    return found
        return None

    def outside_bases(self) -> list[str]:
        """Bases that are not defined in this file, by path."""
        names: list[str] = []
        for base in self.bases:
            if isinstance(base, ClassDef):
                names += base.outside_bases()
            elif isinstance(base, Lib):
                names.append(base.name)
            elif isinstance(base, Unknown):
                names.append(base.path)
        return [name for name in names if name != "builtins.object"]


@record
class Instance(Value):
    cls: ClassDef
    name: str
    attrs: dict[str, Value] = field(default_factory=dict)
    model: Model | None = None
    """Set when the class is a torch module: the same object seen as a model."""
    given: list[Value] | None = None
    """What its constructor was given; None where that is not known."""


@record
class Bound(Value):
    """A method of something that is not defined in this file, not yet called: `step = optimizer.step`."""

    base: Value
    attr: str


@record
class Partial(Value):
    func: Value
    args: list[Value]
    keywords: dict[str, Value]


@record
class Seq(Value):
    items: list[Value]
    perhaps: bool = False
    """Some of the items were added on a branch that may not be taken."""


@record
class Map(Value):
    items: dict[object, Value]


@record
class Range(Value):
    bound: Value
    start: int = 0


@record
class Stream(Value):
    """Something that yields batches: a loader, an iterator over one, `enumerate` of one."""

    path: str
    counted: bool = False
    start: int = 0
    source: Value | None = None
    zipped: tuple[Value, ...] = ()
    """Each item has one of each of these."""
    attrs: dict[str, Value] = field(default_factory=dict)


@record
class Mode:
    """What train() or eval() made of a model; None while neither was seen."""

    training: bool | None = None
    set_at: Location | None = None
    untouched: bool = True
    """Nothing since it was made may have changed the mode."""


EITHER = ("<one>", "<other>")
"""What a model holds those by that two branches left under one name."""


@record
class Model(Value):
    keys: Keys
    """Ids of the model, or of the parts of one: `m1`, `m1.encoder`."""
    name: str
    attrs: dict[str, Value] = field(default_factory=dict)
    mode: Mode = field(default_factory=Mode)
    layers: tuple[str, ...] | None = None
    """Its layers that behave differently in eval mode; None when they are not in sight."""
    inner: Model | None = None
    """Of a wrapper that averages gradients over ranks: the model inside."""
    bypasses: str = ""
    """What the wrapper is called, of a model that was taken out of it."""
    origin: str = ""
    """What was called to make it, where that is imported."""
    unseen: bool = False
    """Some of what it was made of is not in sight, and may be parts of another model."""

    def wrapped(self, name: str) -> Model:
        """The coat is another object than the model inside: a call of it also averages gradients."""
        return replace(self, name=name or self.name, inner=self, bypasses="")

    def inside(self, name: str = "") -> Model:
        """`model.module`: calling that goes around the wrapper."""
        return replace(self, name=name or f"{self.name}.module", inner=None, bypasses=self.name)

    def whole(self, depth: int = 3) -> Keys:
        """Its own keys and those of the models that were put into it."""
        keys = self.keys
        for held in self.attrs.values() if depth else ():
            # A module whose own code was walked is an object of its class.
            part = held.model if isinstance(held, Instance) else held
            if isinstance(part, Model):
                keys |= part.whole(depth - 1)
        return keys


@record
class ActorRef(Value):
    """An optimizer, scaler or schedule."""

    id: str
    kind: ActorKind
    built: bool = True
    """False when its role was inferred from use: it may as well be None."""
    prepared: bool = False
    """Given to `accelerator.prepare`: acts at window ends only."""


@record
class Criterion(Value):
    mean: bool | None = True
    """Whether it averages over the batch; None when that cannot be told."""


@record
class Tensor(Value):
    models: Keys | None = NOTHING
    """Models whose parameters a backward from here reaches; None when that is not known."""
    scaled: bool | None = False
    """Divided for accumulation."""
    scaler: str | None = None
    loss: bool = False
    weight: str = ""
    """What a mean was multiplied by, of which it is not known whether it cares for accumulation."""
    divided_by: str = ""
    """The count within the window that it was divided by, in the place of the window's length."""


@record
class Params(Value):
    """Parameters, or one of them, by the models and optimizers that hold them."""

    models: Keys | None = NOTHING
    optimizers: Keys = NOTHING


@record
class Grad(Value):
    of: Params


@record
class Accelerator(Value):
    """`accelerate.Accelerator` or Lightning's `Fabric`."""

    framework: str
    window: Num | None = None
    """Its gradient_accumulation_steps; None when it was built out of sight."""


NONE = Const(None)


def overlap(one: Keys, other: Keys) -> bool:
    """Whether two sets of models share parameters: a part overlaps the whole it belongs to."""
    if one & other:
        return True
    return any(a.startswith(b + ".") or b.startswith(a + ".") for a in one for b in other)


def same(one: Value, other: Value) -> bool:
    if one is other:
        return True
    if isinstance(one, Const) and isinstance(other, Const):
        return type(one.value) is type(other.value) and bool(one.value == other.value)
    if isinstance(one, Num) and isinstance(other, Num):
        return one.value is not None and (one.value, one.invented) == (other.value, other.invented)
    return False


def join(one: Value | None, other: Value | None, path: str) -> Value:
    """One value for what two branches left in a name."""
    if one is None or other is None:
        return one or other or Unknown(path)
    if same(one, other):
        return one
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        return Tensor(
            models=None if one.models is None or other.models is None else one.models | other.models,
            scaled=one.scaled if one.scaled == other.scaled else None,
            scaler=one.scaler or other.scaler,
            loss=one.loss or other.loss,
        )
    for tensor, plain in ((one, other), (other, one)):
        if isinstance(tensor, Tensor) and isinstance(plain, (Const, Num)):
            return tensor
    if isinstance(one, Num) and isinstance(other, Num):
        return Num(None, units=one.units if one.units == other.units else NOTHING)
    if isinstance(one, Model) and isinstance(other, Model):
        if one.inner is other or other.inner is one:
            return one if one.inner is other else other
        if one.inner is not None and one.inner is other.inner:
            return one  # wrapped in either branch, with other settings
        if one.keys == other.keys and bool(one.bypasses) != bool(other.bypasses):
            # `raw = model.module if distributed else model`: what is inside a wrapper, where there is one.
            inside, model = (one, other) if one.bypasses else (other, one)
            if model.inner is None and EITHER[0] not in model.attrs:
                return inside
        # Held as parts: what is done to either is done to both.
        return Model(one.keys | other.keys, one.name, dict(zip(EITHER, (one, other), strict=True)))
    if isinstance(one, Params) and isinstance(other, Params):
        models = None if one.models is None or other.models is None else one.models | other.models
        return Params(models, one.optimizers | other.optimizers)
    if isinstance(one, Criterion) and isinstance(other, Criterion):
        return one if one.mean else other  # which averages on the path that it averages on
    if type(one) is type(other) and isinstance(one, (Accelerator, Stream)):
        return one
    return Unknown(path)
