"""The state of one execution on abstract tensors, and the log of what it met."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import field

from gradclinic.facts import DomainEdge, Location, LossCall, Op, SoftmaxUse
from gradclinic.frozen import frozen, record
from gradclinic.static.flow.values import Flow, flows_in, shade_of
from gradclinic.static.values import Frame, Instance, Value

MOST_STEPS = 10_000
"""Of six thousand files, none that takes more showed anything after that."""
MOST_STEPS_ELSEWHERE = 3_000
"""The same for a file that has no loss itself: it builds a model, and hands it to one that has."""
DEEPEST_CALL = 16


class TooLong(Exception):
    """The file takes more steps than a file may take."""


@frozen
class Use:
    """A graph gone through, by backward or autograd.grad."""

    where: Location
    node: ast.Call
    flow: Flow
    retain: bool | None
    """None when that is not known."""
    branch: tuple[tuple[int, int], ...]
    """The arms of conditions it stands in."""
    whole: bool = True
    """False for autograd.grad, which is no update."""
    anomaly: Location | None = None
    """Where the detection of anomalies was switched on for it."""
    root: int = 0
    """Which of the functions that nothing calls it happened in; 0 for the file itself."""


@frozen
class Kept:
    """A value added to something that outlives the iteration."""

    where: Location
    flow: Flow
    into: Flow | None
    """What it was added to; None for a list, and for a sum of which nothing is known."""
    holder: int
    """The list, or the sum by its place."""
    branch: tuple[tuple[int, int], ...]
    uses: int
    """How many graphs had been gone through before."""
    marks: int
    """How many signs of an update there had been before."""
    most: int | None = None
    """How many there are at most: of a loop over what is written out."""


@frozen
class Write:
    """A value changed behind the back of its graph, or under its feet."""

    where: Location
    how: str
    uses: int
    """How many graphs had been gone through before."""
    node: int
    """The youngest graph node there was."""
    owners: frozenset[int] = frozenset()
    needed: Location | None = None


@frozen
class Stepped:
    """Weights that an optimizer of torch has changed in place."""

    where: Location
    owners: frozenset[int]
    uses: int
    """How many graphs had been gone through before."""
    node: int
    """The youngest graph node there was."""
    branch: tuple[tuple[int, int], ...]


@record
class Log:
    losses: dict[int, LossCall] = field(default_factory=dict)
    uses: list[Use] = field(default_factory=list)
    kept: list[Kept] = field(default_factory=list)
    piled: list[Kept] = field(default_factory=list)
    """Tensors that grow by what is put at their end."""
    unsure: set[int] = field(default_factory=set)
    """Graph nodes of calls out of sight that may as well give a number."""
    holders: list[Value] = field(default_factory=list)
    """The lists that they were put into."""
    edges: list[tuple[DomainEdge, int]] = field(default_factory=list)
    """With the graph node of the operation: it matters if a backward passes it."""
    chosen: dict[tuple[Location, Op], LossCall] = field(default_factory=dict)
    """What losses are given by models that are chosen among several, one at a time."""
    softmax_uses: list[SoftmaxUse] = field(default_factory=list)
    marks: int = 0
    """Calls of `zero_grad` and `step` so far: signs of one update ending and another beginning."""
    emptied: set[int] = field(default_factory=set)
    """Lists that lose items again."""
    layered: dict[int, frozenset[int]] = field(default_factory=dict)
    """Graph nodes of layers, and whose parameters they use: they need what they saved, and backward
    lets go of it."""
    needing: dict[int, frozenset[int]] = field(default_factory=dict)
    """Those whose backward computes with the weights as they were, and whose weights these are."""
    steps: list[Stepped] = field(default_factory=list)
    casts: bool = False
    """The file casts weights: it is the copies that are computed with."""
    run: set[int] = field(default_factory=set)
    """Graph nodes of models that are not in sight."""
    writes: list[Write] = field(default_factory=list)
    spoiled: dict[int, Write] = field(default_factory=dict)
    """Graph nodes whose result was overwritten in place."""
    unchecked: dict[Location, Location] = field(default_factory=dict)
    """Gradients that may be None, and where they were computed with."""
    checked: set[Location] = field(default_factory=set)
    handed_out: list[tuple[int, Flow]] = field(default_factory=list)
    """Flows given to functions out of sight, with the number of uses before."""
    asked_for: set[Location] = field(default_factory=set)
    """Where losses were made leaves whose own gradients are read: weights of several losses, say."""
    switched: list[Location] = field(default_factory=list)
    """Where the detection of anomalies was switched on for good, each time it was."""
    layers: dict[int, str] = field(default_factory=dict)
    """Layers that can be trained, as a user would point at them."""
    optimized: set[int] = field(default_factory=set)
    """Layers whose parameters were given to an optimizer."""
    trained: set[str] = field(default_factory=set)
    """What else was given to one, by the name it is held by: `params` of `params["alpha"]`."""
    singled: set[tuple[int, int]] = field(default_factory=set)
    """Arms of conditions that hold of one iteration among all, or of a few: `if step == 0`."""
    finished: bool = True
    root: int = 0
    left: set[int] = field(default_factory=set)
    """Graph nodes that may be met again after the function that made them, run for itself, has ended."""
    returned: list[tuple[int, Flow]] = field(default_factory=list)
    """What functions that nothing calls give back, with the number of the function."""
    unseen: set[str] = field(default_factory=set)
    """Models and losses out of sight that were run."""
    remembers: bool = False
    """The file speaks of models that carry something from one call to the next."""
    rescales: bool = False
    """The file divides gradients: a sum may be brought to size there."""


@record
class Machine:
    asked: str
    """The file that is to be told about."""
    home: str
    """The file that is run: the same, or one that calls its functions."""
    frame: Frame
    execute: Callable[[Machine, list[ast.stmt]], None]
    evaluate: Callable[[Machine, ast.expr], Value]
    path: str = ""
    """The file that what runs stands in."""
    log: Log = field(default_factory=Log)
    builds: dict[ast.AST, set[tuple[str, str]]] = field(default_factory=dict)
    """Attributes that methods make, as far as somebody asked."""
    steps: int = MOST_STEPS
    ids: int = 0
    freezes: bool = False
    """Some parameters of the file are frozen: a layer may not train."""
    no_grad: list[Location] = field(default_factory=list)
    """Where gradients were switched off, outermost first."""
    perhaps_no_grad: int = 0
    anomaly: tuple[Location, tuple[tuple[int, int], ...]] | None = None
    """Where the detection of anomalies was switched on, and under which conditions."""
    reads_all: bool = False
    """It matters that a model ends in no softmax, or keeps no graph."""
    models: frozenset[str] = frozenset()
    """Names that the file treats as modules are treated, whatever they sound like."""
    choosing: int = 0
    """Above zero while one of several functions is called: which one is not known."""
    narrowed: list[bool] = field(default_factory=lambda: [False])
    """Of the file and each function that runs: whether a condition that is not known has left it before."""
    branch: tuple[tuple[int, int], ...] = ()
    modules: dict[str, Frame | None] = field(default_factory=dict)
    """Other files of the project, by path, with the names they define."""
    untold: set[tuple[str, re.Pattern[str] | None]] = field(default_factory=set)
    """Those that do not speak of what was asked for."""
    imports: dict[tuple[object, ...], Value | None] = field(default_factory=dict)
    """What names of other files stand for, by who asks for them; None for those that are nowhere."""
    reading: int = 0
    """Depth of other files that are being read."""
    stars: dict[str, list[str]] = field(default_factory=dict)
    """The modules that a file takes every name of, by its path."""
    active: list[ast.AST] = field(default_factory=list)
    handed: list[tuple[Location | None, list[Flow]]] = field(default_factory=list)
    """Of each function being run: where it was called, and the tensors that it was given."""
    loops: list[ast.AST] = field(default_factory=list)
    """The loops being run, innermost last."""
    restarts: dict[tuple[ast.AST, ast.AST], bool] = field(default_factory=dict)
    """Of each sum and the loop that adds to it: whether the loop lets it start over."""
    built: list[Instance] = field(default_factory=list)
    """Objects of classes of the file that is to be told about."""
    made_up: dict[ast.ClassDef, Instance] = field(default_factory=dict)
    """One of each class whose methods are run though the program makes none."""
    reached: set[ast.AST] = field(default_factory=set)
    returned: list[list[Value]] = field(default_factory=list)
    places: dict[tuple[ast.AST, str, str], Location] = field(default_factory=dict)
    """Where pieces of code stand, by the function and file they are run in, as far as it has been asked."""

    def at(self, node: ast.AST) -> Location:
        key = (node, self.frame.qualname, self.path)
        place = self.places.get(key)
        if place is None:
            place = Location(key[2], node.lineno, node.col_offset, key[1])  # type: ignore[attr-defined]
            self.places[key] = place
        return place

    def kept_at(self, node: ast.AST, flow: Flow) -> Location:
        """Where a value is given away to be kept: by the call of the function that is handed it to do so."""
        place = self.at(node)
        for where, given in reversed(self.handed):
            if where is None or not any(
                one.losses and one.losses <= flow.losses and one.nodes <= flow.nodes for one in given
            ):
                break
            place = where
        return place

    def new_id(self) -> int:
        self.ids += 1
        return self.ids

    def tick(self) -> None:
        self.steps -= 1
        if self.steps < 0:
            raise TooLong

    def let_out(self, value: Value) -> None:
        """Put where another function may find it."""
        shade = shade_of([value])
        self.log.left |= shade.nodes if shade is not None else frozenset()

    def give_back(self, value: Value) -> None:
        """To whoever calls a function that nothing in sight calls; a loss he will but look at."""
        self.let_out(value)
        flows = [flow for flow in flows_in(value) if not (flow.grad is False or flow.scalar or flow.losses)]
        self.log.returned += [(self.log.root, flow) for flow in flows]

    @contextmanager
    def arm(self, condition: int, number: int) -> Iterator[None]:
        """One arm of a condition that is not decided."""
        before = self.branch
        self.branch = (*before, (condition, number))
        try:
            yield
        finally:
            self.branch = before
