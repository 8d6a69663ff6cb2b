"""The state of one walk along one path."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import field

from gradclinic.facts import EventKind, Location
from gradclinic.frozen import frozen, record
from gradclinic.static.abilities import Can
from gradclinic.static.choices import Choices
from gradclinic.static.recorder import OF_THIS_RUN, Call, Recorder
from gradclinic.static.relevance import Relevance
from gradclinic.static.survey import Survey
from gradclinic.static.syntax import is_window
from gradclinic.static.values import NOTHING, Frame, Func, Keys, Model, Module, Num, Unknown, Value

DEEPEST_CALL = 24
DEEPEST_SUMMARY = 5


class OutOfBudget(Exception):
    """The walk took more steps than one root may take."""


class BreakLoop(Exception):
    pass


class ContinueLoop(Exception):
    pass


class Stop(Exception):
    """`raise` or the program's exit: the path ends here."""


class ReturnValue(Exception):
    def __init__(self, value: Value) -> None:
        self.value = value


@record
class Arguments:
    """The evaluated arguments of one call."""

    positional: list[Value] = field(default_factory=list)
    keywords: dict[str, Value] = field(default_factory=dict)
    partial: bool = False
    """True when `*args` or `**kwargs` of unknown content were among them."""

    def get(self, position: int, name: str) -> Value | None:
        if name in self.keywords:
            return self.keywords[name]
        return self.positional[position] if position < len(self.positional) else None

    def all(self) -> list[Value]:
        return [*self.positional, *self.keywords.values()]


@frozen
class Hook:
    """A function that was handed over to be called later."""

    when: str
    of: Keys
    """The optimizer, or the parts of the model; nothing for one of all optimizers."""
    function: Value


@record
class Budget:
    steps: int

    def left(self) -> bool:
        return self.steps > 0


@record
class Walk:
    path: str
    survey: Survey
    relevance: Relevance
    recorder: Recorder
    choices: Choices
    frame: Frame
    budget: Budget
    rounds: int
    """How often a loop goes around that nothing in sight ends."""
    data_length: int
    """How many batches every loader has."""
    window: int
    """The modulus that stands for every period not known or too long to walk."""
    period: int
    """The longest period that is walked as it is."""
    execute: Callable[[Walk, list[ast.stmt]], None]
    call: Callable[[Walk, Func, Arguments, ast.AST], Value]
    assigning: str = ""
    """What the value being computed will be called."""
    for_effect: ast.AST | None = None
    """The expression whose value nobody takes: a statement, or what a block is entered with."""
    modules: Mapping[str, Module] = field(default_factory=dict)
    """Other modules of the project that the file imports from, as it spells them."""
    taken: dict[int, tuple[Unknown, Model]] = field(default_factory=dict)
    """What unseen calls made and functions take for models, by identity."""
    opened: dict[str, Frame] = field(default_factory=dict)
    """The names of those that were needed so far, by path."""
    reached: set[ast.AST] = field(default_factory=set)
    active: list[ast.AST] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    """Where each of those that are being run was called."""
    callers: list[Frame] = field(default_factory=list)
    """From where that was."""
    summarising: int = 0
    """Above zero while a function is read for its value only: all branches, one iteration."""
    returned: list[list[Value]] = field(default_factory=list)
    no_grad: int = 0
    perhaps_no_grad: int = 0
    """Depth of blocks that switch gradients on or off by a condition that is not known."""
    autocast: list[tuple[str, Value]] = field(default_factory=list)
    """The autocast blocks around, each with its precision where that is told, and what switches it on."""
    in_step: int = 0
    """Depth of closures that steps run."""
    unsynced: int = 0
    """Depth of `no_sync()` blocks."""
    reducing: dict[str, Keys] = field(default_factory=dict)
    """Wrappers whose last forward arranged an exchange of gradients, with what they hold."""
    unsure: int = 0
    """Depth of branches that are walked without knowing whether they are taken."""
    branches: list[tuple[str, bool]] = field(default_factory=list)
    """The conditions of those, and what each must be; no name for one that is made of several."""
    supposed: dict[str, bool] = field(default_factory=dict)
    """Answers that go with what a name stands for since two branches were joined: a model in its wrapper."""
    supposed_wrongly: bool = False
    """This path has answered otherwise."""
    some_parameters: int = 0
    """Depth of loops over parameters that treat them differently."""
    sweeps: list[ast.AST] = field(default_factory=list)
    """The loops being run in which nothing is trained, outermost first."""
    batches: int = 0
    """Depth of loops that count as data."""
    micro_batch: int = 0
    """Entries into `accelerator.accumulate` so far."""
    last_batch: bool = False
    loops: list[tuple[Frame, bool, ast.AST]] = field(default_factory=list)
    """The loops being run, innermost last, each with whether this is its last iteration."""
    synced: bool = True
    in_window: bool = False
    skipping: int = 0
    """Depth of branches that leave out the rest of an iteration."""
    hooks_unscale: bool = False
    """Something out of sight was given the scaler to hang it up where the walk does not come by."""
    scaling: list[bool] = field(default_factory=list)
    """The blocks of `amp.scale_loss` around, each with whether a backward was in it."""
    later: list[str] = field(default_factory=list)
    """The conditions around that hold from some iteration on, not from the first."""
    hooks: list[Hook] = field(default_factory=list)
    """What is to be called where an optimizer steps or a model goes forward."""
    switches: dict[str, Value] = field(default_factory=dict)
    """What each scaler is enabled by, where that is not known."""
    by_choice: int = 0
    """Depth of branches within a loop that this path takes and another one does not."""
    scale_guarded: int = 0
    """Depth of branches taken only when the scaler did or did not skip a step."""

    def at(self, node: ast.AST) -> Location:
        return self._place(node, self.frame)

    def _place(self, node: ast.AST, frame: Frame) -> Location:
        """One object for all paths and iterations that come by: tapes are compared by their places."""
        key = (node, frame.qualname)
        place = self.survey.places.get(key)
        if place is None:
            path = frame.module.path or self.path
            place = Location(path, node.lineno, node.col_offset, key[1])  # type: ignore[attr-defined]
            self.survey.places[key] = place
        return place

    def asked_for_at(self, node: ast.AST) -> Location:
        """Where who trains has this done: by calling a helper, which neither goes backward nor steps."""
        frame = self.frame
        for function, (_, call), caller in zip(
            reversed(self.active), reversed(self.calls), reversed(self.callers), strict=False
        ):
            if self.can(function) & (Can.BACKWARD | Can.STEP):
                break
            frame, node = caller, call
        return self._place(node, frame)

    def called_by_loop_at(self) -> Location | None:
        """Where the innermost loop being run calls what leads here; None for what stands in it itself."""
        around = self.loops[-1][0]
        for (_, call), caller in zip(reversed(self.calls), reversed(self.callers), strict=False):
            if caller is around:
                return self._place(call, caller)
        return None

    def emit(
        self,
        kind: EventKind,
        node: ast.AST,
        *,
        actor: str | None = None,
        models: Keys | None = NOTHING,
        optimizers: Keys = NOTHING,
        attrs: Mapping[str, object] | None = None,
    ) -> None:
        if self.later and kind in (EventKind.STEP, EventKind.SCHEDULE):
            attrs = {**(attrs or {}), "later": tuple(self.later)}
        if self.by_choice and kind is EventKind.SCHEDULE:
            attrs = {**(attrs or {}), "by_choice": True}
        if kind is EventKind.ZERO_GRAD and models and self.recorder.are_of(models, tuple(self.calls)):
            attrs = {**(attrs or {}), OF_THIS_RUN: True}
        where = self.at(node)
        if kind is EventKind.CLIP and self.calls:
            where, inside = self.asked_for_at(node), where
            if where is not inside:
                attrs = {**(attrs or {}), "inside": inside}
        self.recorder.emit(kind, where, actor=actor, models=models, optimizers=optimizers, attrs=attrs)

    def made(self, name: str, node: ast.AST) -> str:
        """The key of a model that is made here."""
        key = f"{name}@{getattr(node, 'lineno', 0)}:{getattr(node, 'col_offset', 0)}"
        return self.recorder.make(key, tuple(self.calls))

    def tick(self) -> None:
        self.budget.steps -= 1
        if self.budget.steps < -2000:
            raise OutOfBudget

    def decide(self, condition: str) -> bool:
        answer = self.choices.decide(condition)
        if self.supposed.get(condition, answer) is not answer:
            self.supposed_wrongly = True
        return answer

    def can(self, node: ast.AST) -> int:
        return self.survey.can(node)

    def leaves_early(self) -> bool:
        """Whether a break that may happen at any time happens now: in the last iteration walked."""
        if not self.loops or self.loops[-1][0] is not self.frame:
            return True
        _, last, loop = self.loops[-1]
        return last and not is_window(loop)  # all of a window is needed to see that it is one

    def steps_in_loop(self) -> bool:
        """Whether the innermost loop being run updates by itself, and does not merely fill a window."""
        return bool(self.loops) and bool(self.can(self.loops[-1][2]) & Can.STEP)

    def trains_in_loop(self) -> bool:
        """Whether what happens now happens again for every pass of some training loop."""
        whole = Can.BACKWARD | Can.STEP
        return any(self.can(loop) & whole == whole for _, _, loop in self.loops)

    def counts_batches(self) -> bool:
        """Whether the innermost loop being run goes over batches."""
        loop = self.loops[-1][2] if self.loops else None
        return isinstance(loop, (ast.For, ast.AsyncFor)) and self.survey.owns_beat(loop)

    def invented(self, value: int, *units: str) -> Num:
        return Num(value, invented=True, units=frozenset(units))
