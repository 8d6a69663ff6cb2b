"""Where a walk starts: the module itself, then every function that nothing walked before has called."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterator

from gradclinic.facts import EventKind, Tape
from gradclinic.frozen import frozen
from gradclinic.static.abilities import Can
from gradclinic.static.arithmetic import LONGEST_PERIOD
from gradclinic.static.calls import call_function, instantiate, receive_parameters, without_gradients
from gradclinic.static.modules import define
from gradclinic.static.paths import Choices, explore
from gradclinic.static.recorder import Recorder
from gradclinic.static.relevance import Relevance
from gradclinic.static.statements import execute
from gradclinic.static.survey import Survey
from gradclinic.static.values import ClassDef, Const, Frame, Func, FunctionNode, Instance, Model, Num
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

STEPS_PER_ROOT = 12_000
STEPS_PER_FILE = 60_000
"""Far more than a file that trains takes: one that merely looks like it must come to an end."""
_HOOKS = frozenset({"__init__", "configure_optimizers", "forward"})


@frozen
class Root:
    node: FunctionNode | ast.Module
    owner: ast.ClassDef | None = None


def find_roots(tree: ast.Module, survey: Survey) -> Iterator[Root]:
    """The module first; then functions nobody mentions; then what is left, in order of appearance."""
    # What is imported from another module may be called by another name than it is defined by.
    if survey.modules or survey.can_any(tree.body) & Can.TELL:
        yield Root(tree)
    acting = [
        node
        for node in survey.qualnames
        if node not in survey.nested
        and node not in survey.foreign
        and node.name not in _HOOKS
        and survey.can(node) & Can.TELL
    ]
    for node in acting:
        if not node.name.startswith("__") and not _mentioned(node, acting, survey):
            yield Root(node, survey.owners.get(node))
    for node in acting:
        yield Root(node, survey.owners.get(node))


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
    allowed = min(STEPS_PER_ROOT, left.steps)
    budget = Budget(allowed)

    def walk_path(choices: Choices) -> Tape:
        return _walk(root, tree, survey, relevance, path, choices, budget, reached)

    tapes = list(explore(walk_path, budget.left, shape_of))
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
    period = max([k for k in survey.moduli if 1 < k <= LONGEST_PERIOD], default=2)
    tail = 1 if survey.guarded else 0
    walk = Walk(
        path=path,
        survey=survey,
        relevance=relevance,
        recorder=Recorder(),
        choices=choices,
        frame=Frame(""),
        budget=budget,
        data_length=2 * period + tail,
        window=2,
        period=period,
        execute=execute,
        call=call_function,
        modules=survey.modules,
        reached=reached,
    )
    finished = True
    try:
        _enter(walk, root, tree)
    except (ReturnValue, BreakLoop, ContinueLoop, Stop):
        pass
    except (OutOfBudget, RecursionError):
        finished = False
    complete = finished and isinstance(root.node, ast.Module) and _all_reached(survey, reached)
    return walk.recorder.tape(complete=complete)


def _all_reached(survey: Survey, reached: set[ast.AST]) -> bool:
    return all(
        node in reached
        for node in survey.qualnames
        if node not in survey.foreign and survey.can(node) & Can.ACT
    )


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
    if _called_with_batches(func):
        _each_batch(walk, root.node)
    else:
        execute(walk, root.node.body)


def _called_with_batches(func: Func) -> bool:
    """`training_step` of Lightning: its framework calls it again and again."""
    bound = func.bound
    return (
        isinstance(bound, Instance)
        and func.qualname.endswith(".training_step")
        and any(name.endswith("LightningModule") for name in bound.cls.outside_bases())
    )


def _each_batch(walk: Walk, node: FunctionNode) -> None:
    names = [argument.arg for argument in node.args.args]
    given = dict(walk.frame.vars)
    walk.batches += 1
    for index in range(walk.data_length):
        walk.emit(EventKind.BATCH, node)
        walk.frame.vars = dict(given)
        if len(names) > 2:
            walk.frame.vars[names[2]] = Num(index, invented=True, units=frozenset({"index"}))
        with contextlib.suppress(ReturnValue):
            execute(walk, node.body)


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
    return Func(method.node, method.frame, method.qualname, bound=instance, decorators=method.decorators)
