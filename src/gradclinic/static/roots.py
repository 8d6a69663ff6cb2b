"""Where a walk starts: the module itself, then every function that nothing walked before has called."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Collection, Iterator

from gradclinic.facts import EventKind, Tape
from gradclinic.frozen import frozen
from gradclinic.static.abilities import Can
from gradclinic.static.arithmetic import LONGEST_PERIOD
from gradclinic.static.budgets import steps_for
from gradclinic.static.calls import call_function, instantiate, receive_parameters, without_gradients
from gradclinic.static.choices import Choices
from gradclinic.static.closing import all_reached, kept_by_its_class, kept_inside, leave_to_source
from gradclinic.static.hooks import called_with_batches, gives_a_loss, step_by_the_caller, update_by_itself
from gradclinic.static.ignite import engine_at, handed_to_engines, has_acting_handlers
from gradclinic.static.modules import define
from gradclinic.static.one_step import acts_early, clips_first, counted_by, is_one_step, is_whole
from gradclinic.static.paths import explore
from gradclinic.static.recorder import Recorder
from gradclinic.static.relevance import Relevance
from gradclinic.static.scalers import note_steps, switch_off
from gradclinic.static.statements import execute
from gradclinic.static.survey import Survey
from gradclinic.static.values import (
    NONE,
    ClassDef,
    Const,
    Frame,
    Func,
    FunctionNode,
    Instance,
    Model,
    Num,
    Value,
)  # fmt: skip
from gradclinic.static.walk import (
    Arguments,
    BreakLoop,
    Budget,
    ContinueLoop,
    OutOfBudget,
    ReturnValue,
    Stop,
    Walk,
)

LATER_PATHS = 0.6
"""How many steps a later path takes for each that an earlier one took, at least."""
_HOOKS = frozenset({"__init__", "configure_optimizers", "forward"})
_UPDATES = Can.BACKWARD | Can.STEP


@frozen
class Root:
    node: FunctionNode | ast.Module
    owner: ast.ClassDef | None = None
    handed: FunctionNode | None = None
    """A function defined inside `node` that it gives back or hands on: somebody calls it, once or `again`."""
    again: bool = False
    """It is one step of a training, which somebody calls for every batch."""
    counter: str = ""
    """The parameter that tells it how many batches there were before."""
    stepped: bool = False
    """Whoever calls it steps on what it computes, and clears."""

    @property
    def aim(self) -> FunctionNode | ast.Module:
        """What nothing walked before has reached, or there is no need to start here."""
        return self.handed or self.node


def find_roots(
    tree: ast.Module, survey: Survey, reached: Collection[ast.AST], parts: Collection[ast.AST]
) -> Iterator[Root]:
    """The module first; then functions nobody mentions; then what is left, in order of appearance. Of the
    `parts` of what could not be walked as a whole, those that call others come first."""
    # What is imported from another module may be called by another name than it is defined by.
    if survey.modules or survey.can_any(tree.body) & survey.telling:
        yield Root(tree)
    acting = [
        node
        for node in survey.qualnames
        if node not in survey.nested
        and node not in survey.foreign
        and (node.name not in _HOOKS or _trains_in_forward(node, survey))
        and survey.can(node) & survey.telling
    ]
    for node in acting:
        if not node.name.startswith("__") and not _mentioned(node, acting, survey):
            yield Root(node, survey.owners.get(node))
    left = acting
    while left := [node for node in left if node not in reached]:
        first = left[0]
        if first in parts:
            rest = [node for node in left if node in parts]
            first = next((node for node in rest if not _mentioned(node, rest, survey)), first)
        yield Root(first, survey.owners.get(first))
        left = [node for node in left if node is not first]
    called = handed_to_engines(tree)
    for node in survey.nested - survey.foreign:
        outer = _around(node, survey) if survey.can(node) & Can.BACKWARD else None
        if outer is not None:
            again = node.name in called and not has_acting_handlers(outer, node)
            yield Root(outer, survey.owners.get(outer), node, again=again)


def _trains_in_forward(node: FunctionNode, survey: Survey) -> bool:
    """A trainer may be called as a module is; a model whose forward steps an optimizer is a trainer too."""
    return node.name == "forward" and survey.can(node) & _UPDATES == _UPDATES


def _around(node: FunctionNode, survey: Survey) -> FunctionNode | None:
    """The function that `node` is defined in, if that one stands by itself."""
    outer = survey.qualnames[node].rpartition(".")[0]
    found = [other for other, name in survey.qualnames.items() if name == outer]
    return found[0] if found and found[0] not in survey.nested else None


def _mentioned(node: FunctionNode, others: list[FunctionNode], survey: Survey) -> bool:
    return any(node.name in survey.mentions(other) for other in others if other is not node)


def walk_root(
    root: Root,
    tree: ast.Module,
    survey: Survey,
    relevance: Relevance,
    path: str,
    reached: set[ast.AST],
    left: Budget,
) -> list[Tape]:
    allowed = min(steps_for(root.node, survey), left.steps)
    budget = Budget(allowed)
    walked = 0

    def walk_from(start: Root) -> list[Tape]:
        def walk_path(choices: Choices) -> Tape:
            nonlocal walked
            walked += 1
            return _walk(start, tree, survey, relevance, path, choices, budget, reached)

        return explore(walk_path, afford, shape_of)

    def afford(waiting: int) -> bool:
        """Paths that are still to be walked take about as long as those before them."""
        each = (allowed - budget.steps) / max(1, walked) * LATER_PATHS
        return budget.left() and each * waiting <= budget.steps

    tapes = walk_from(root)
    counter = counted_by(root.node, survey) if root.handed is None else None
    if counter is not None:
        again = walk_from(Root(root.node, root.owner, again=True, counter=counter))
        tapes = again if any(map(is_whole, again)) else tapes
    elif is_one_step(root.node, root.owner, tree, survey, tapes, path):
        tapes = walk_from(Root(root.node, root.owner, again=True))
    elif root.owner is not None and any(map(clips_first, tapes)):
        tapes = walk_from(Root(root.node, root.owner, again=True, stepped=True))
    elif not root.again and acts_early(root.aim, survey, tapes):
        tapes = walk_from(Root(root.node, root.owner, root.handed, again=True))
    left.steps -= allowed - budget.steps
    return tapes


def shape_of(tape: Tape) -> tuple[object, ...]:
    """All that tells two tapes apart."""
    return tuple((e.kind, e.where, e.actor, e.optimizers, tuple(e.attrs.items())) for e in tape.events)


def _walk(
    root: Root,
    tree: ast.Module,
    survey: Survey,
    relevance: Relevance,
    path: str,
    choices: Choices,
    budget: Budget,
    reached: set[ast.AST],
) -> Tape:
    # A window that begins with its step is cut by an epoch where two are left over, of three.
    window = 3 if survey.steps_first else 2
    period = max([window, *(k for k in survey.moduli if k <= LONGEST_PERIOD)])
    # Twice around it. Without windows four do: one may be passed over, and three show what repeats.
    rounds = 2 * period if survey.guarded else 4
    tail = window - 1 if survey.guarded and not survey.keeps_whole_windows else 0
    walk = Walk(
        path=path,
        survey=survey,
        relevance=relevance,
        recorder=Recorder(),
        choices=choices,
        frame=Frame(""),
        budget=budget,
        rounds=rounds,
        data_length=rounds + tail,
        window=window,
        period=period,
        execute=execute,
        call=call_function,
        modules=survey.modules,
        reached=reached,
    )
    finished, exits = True, False
    result: Value = NONE
    try:
        _enter(walk, root, tree)
    except ReturnValue as returned:
        result = returned.value
    except (BreakLoop, ContinueLoop, Stop) as left:
        exits = isinstance(left, Stop)
    except (OutOfBudget, RecursionError):
        finished = False
    if finished and not isinstance(root.node, ast.Module) and root.handed is None:
        walk.recorder.contained(kept_inside(walk, root.node, result))
        walk.recorder.contained(kept_by_its_class(walk, root.node, root.owner, tree))
    leave_to_source(walk, tree, exits=exits)
    switch_off(walk)
    note_steps(walk)
    complete = finished and isinstance(root.node, ast.Module) and all_reached(survey, reached)
    return walk.recorder.tape(complete=complete)


def _enter(walk: Walk, root: Root, tree: ast.Module) -> None:
    if isinstance(root.node, ast.Module):
        execute(walk, tree.body)
        return
    walk.reached.add(root.node)
    define(walk, tree)
    func = _bound(walk, root)
    if func is None:
        return
    frame = Frame(func.qualname, func.frame, owner=func)
    receive_parameters(walk, func, frame)
    walk.frame = frame
    walk.no_grad += without_gradients(func)
    walk.active.append(root.node)
    if root.handed is not None:
        _hand_on(walk, root.node, root.handed, again=root.again)
    elif root.again or called_with_batches(func):
        counter = root.counter if root.again else _third(root.node)
        _each_batch(walk, func, root.node, counter, stepped=root.stepped)
    else:
        execute(walk, root.node.body)


def _hand_on(walk: Walk, outer: FunctionNode, inner: FunctionNode, *, again: bool) -> None:
    """Call the function that `outer` defines; what `outer` does itself has been told of already."""
    with contextlib.suppress(ReturnValue):
        execute(walk, outer.body)
    walk.recorder.drafts.clear()
    defined = walk.frame.vars.get(inner.name)
    if not isinstance(defined, Func) or defined.node is not inner:
        return
    if not again:
        call_function(walk, defined, Arguments(partial=True), inner)
        return
    walk.batches += 1
    for index in range(walk.data_length):
        walk.emit(EventKind.BATCH, inner)
        call_function(walk, defined, Arguments([engine_at(index)], partial=True), inner)


def _third(node: FunctionNode) -> str:
    """`batch_idx` of `training_step(self, batch, batch_idx)`."""
    return node.args.args[2].arg if node.name == "training_step" and len(node.args.args) > 2 else ""


def _each_batch(walk: Walk, func: Func, node: FunctionNode, counter: str, *, stepped: bool) -> None:
    given = dict(walk.frame.vars)
    walk.batches += 1
    for index in range(walk.data_length):
        walk.emit(EventKind.BATCH, node)
        walk.frame.vars = dict(given)
        if counter:
            walk.frame.vars[counter] = Num(index, invented=True, units=frozenset({"index"}))
        before = len(walk.recorder.drafts)
        with contextlib.suppress(ReturnValue):
            execute(walk, node.body)
        if stepped:
            step_by_the_caller(walk, node)
        elif gives_a_loss(walk, func):
            update_by_itself(walk, node, since=before)


def _completed(walk: Walk, cls: ClassDef, method: FunctionNode) -> ClassDef:
    """The class itself, or one below it that has the methods which `method` calls and `cls` leaves open."""
    called = {name for name in walk.survey.mentions(method) if name in walk.survey.functions}
    wanted = {name for name in called if cls.find(name) is None}
    for other in walk.frame.vars.values() if wanted else ():
        if isinstance(other, ClassDef) and cls in other.bases and wanted & other.attrs.keys():
            return other
    return cls


def _bound(walk: Walk, root: Root) -> Func | None:
    assert not isinstance(root.node, ast.Module)
    if root.owner is None:
        found = walk.frame.vars.get(root.node.name)
        return found if isinstance(found, Func) and found.node is root.node else None
    cls = walk.frame.vars.get(root.owner.name)
    if not isinstance(cls, ClassDef):
        return None
    method = cls.attrs.get(root.node.name)
    if not isinstance(method, Func):
        return None
    cls = _completed(walk, cls, root.node)
    instance = instantiate(walk, cls, Arguments(partial=True), root.owner)
    if not isinstance(instance, Instance):
        instance = Instance(cls, "self", model=instance if isinstance(instance, Model) else None)
    instance.name = "self"
    # None in __init__ is a place kept free: some other method or file fills it before training.
    for name in [
        name for name, value in instance.attrs.items() if isinstance(value, Const) and value.value is None
    ]:
        del instance.attrs[name]
    return method.of(instance)
