"""Statements: every branch is run and joined, every loop goes around twice."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from gradclinic.static import imports, words
from gradclinic.static.flow import assignments, contexts
from gradclinic.static.flow.collections import items_of
from gradclinic.static.flow.expressions import bind, evaluate, tested, truth
from gradclinic.static.flow.hierarchies import base_of
from gradclinic.static.flow.items import item_of
from gradclinic.static.flow.joining import join
from gradclinic.static.flow.machine import Machine
from gradclinic.static.flow.values import Alike, Listed
from gradclinic.static.syntax import last_name, names_in
from gradclinic.static.values import (
    NONE,
    ClassDef,
    Frame,
    Func,
    Value,
)  # fmt: skip
from gradclinic.static.walk import BreakLoop, ContinueLoop, ReturnValue, Stop

TIMES_AROUND = 2
MOST_ITEMS = 6
"""Of a plain list that are gone through; the layers of a model are all of them run."""


def execute(machine: Machine, body: list[ast.stmt]) -> None:
    for statement in body:
        machine.tick()
        handler = _HANDLERS.get(type(statement))
        if handler is not None:
            handler(machine, statement)


def _expression(machine: Machine, node: ast.Expr) -> None:
    if not isinstance(node.value, ast.Constant):
        evaluate(machine, node.value)


def _if(machine: Machine, node: ast.If) -> None:
    known = tested(machine, node.test)
    if known is None and _is_main(node.test):
        known = True
    if known is not None:
        execute(machine, node.body if known else node.orelse)
        return
    run_arms(machine, node, [node.body, node.orelse])


def _is_main(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and test.left.id == "__name__"


def run_arms(machine: Machine, node: ast.stmt, arms: list[list[ast.stmt]]) -> None:
    """Run each arm from the same start and join what those that go on have left."""
    id = machine.new_id()
    if isinstance(node, ast.If) and _singles_out(node.test):
        machine.log.singled.add((id, 0))
    before, frame, branch = machine.frame.vars, machine.frame, machine.branch
    ends: list[dict[str, Value]] = []
    left: BaseException | None = None
    for number, body in enumerate(arms):
        frame.vars = dict(before)
        machine.branch = (*branch, (id, number))  # what `arm` does, for half of its time
        try:
            execute(machine, body)
            ends.append(frame.vars)
        except (ReturnValue, BreakLoop, ContinueLoop, Stop) as leaving:
            left = leaving
            machine.narrowed[-1] |= not isinstance(leaving, Stop)
        finally:
            machine.branch = branch
    if not ends:
        frame.vars = before
        assert left is not None
        try:
            raise left
        finally:
            del left  # which holds this frame by its traceback, and would never be let go
    joined = ends[0]
    for other in ends[1:]:
        for name, two in other.items():
            one = joined.get(name)
            if one is not two:
                joined[name] = join(one, two, name)
    before.clear()
    before.update(joined)
    frame.vars = before


def _singles_out(test: ast.expr) -> bool:
    """`step == 0` and `i < 8`, but neither `step % 10 == 0` nor `phase == "train"` nor `loss < 100`."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return any(map(_singles_out, test.values))
    if not isinstance(test, ast.Compare) or not _counts_few(test):
        return False
    named = any(isinstance(part, ast.Constant) and isinstance(part.value, str) for part in ast.walk(test))
    names = names_in(test.left)
    measured = "len" not in names and any(map(words.LOSS_NAME.search, names))
    return not (named or measured or any(isinstance(part, ast.Mod) for part in ast.walk(test)))


def _counts_few(test: ast.Compare) -> bool:
    """`i < 8` and `8 > i`, `i in (0, 10)`, and the last ones: `i >= len(loader) - 8`."""
    if isinstance(test.ops[0], (ast.Gt, ast.GtE)):
        return isinstance(test.left, ast.Constant) or "len" in names_in(test.comparators[0])
    return isinstance(test.ops[0], (ast.Eq, ast.Lt, ast.LtE, ast.In))


def _for(machine: Machine, node: ast.For | ast.AsyncFor) -> None:
    source = evaluate(machine, node.iter)
    items = items_of(source)
    if items is None or isinstance(source, Alike):
        items = [item_of(source) if items is None else items[0] for _ in range(TIMES_AROUND)]
    elif not isinstance(source, Listed):
        items = items[:MOST_ITEMS]
    machine.loops.append(node)
    try:
        for item in items:
            bind(machine, node.target, item)
            try:
                execute(machine, node.body)
            except ContinueLoop:
                continue
    except BreakLoop:
        return
    finally:
        machine.loops.pop()
    execute(machine, node.orelse)


def _while(machine: Machine, node: ast.While) -> None:
    machine.loops.append(node)
    try:
        for _ in range(TIMES_AROUND):
            if truth(evaluate(machine, node.test)) is False:
                break
            try:
                execute(machine, node.body)
            except ContinueLoop:
                continue
    except BreakLoop:
        return
    finally:
        machine.loops.pop()


def _with(machine: Machine, node: ast.With | ast.AsyncWith) -> None:
    leaving: list[Callable[[], None]] = []
    try:
        for item in node.items:
            value, leave = contexts.enter(machine, item.context_expr)
            leaving.append(leave)
            if item.optional_vars is not None:
                assignments.assign(machine, item.optional_vars, value)
        execute(machine, node.body)
    finally:
        for leave in reversed(leaving):
            leave()


def _try(machine: Machine, node: ast.Try) -> None:
    try:
        execute(machine, [*node.body, *node.orelse])
    except Stop:
        pass
    finally:
        execute(machine, node.finalbody)
    for handler in node.handlers:
        run_arms(machine, node, [[], handler.body])


def _match(machine: Machine, node: ast.Match) -> None:
    evaluate(machine, node.subject)
    run_arms(machine, node, [case.body for case in node.cases])


def _return(machine: Machine, node: ast.Return) -> None:
    if not machine.frame.qualname:
        return  # Astray in a cell of a notebook, which is not run; those after it are
    value = evaluate(machine, node.value) if node.value is not None else NONE
    if machine.returned:
        machine.returned[-1].append(value)
    raise ReturnValue(value)


def _stop(machine: Machine, node: ast.Raise) -> None:
    raise Stop


def _break(machine: Machine, node: ast.Break) -> None:
    raise BreakLoop


def _continue(machine: Machine, node: ast.Continue) -> None:
    raise ContinueLoop


def _shared(machine: Machine, node: ast.Global | ast.Nonlocal) -> None:
    machine.frame.shared.update(node.names)


def _function(machine: Machine, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    machine.frame.vars[node.name] = _defined(machine, node, machine.frame)


def _defined(machine: Machine, node: ast.FunctionDef | ast.AsyncFunctionDef, frame: Frame) -> Func:
    decorators = tuple(last_name(item) for item in node.decorator_list)
    outer = machine.frame.qualname
    return Func(node, frame, f"{outer}.{node.name}" if outer else node.name, decorators=decorators)


def _class(machine: Machine, node: ast.ClassDef) -> None:
    outer = machine.frame
    bases = tuple(
        base_of(machine, node, evaluate(machine, base))
        for base in node.bases
        if not isinstance(base, ast.Starred)
    )
    defined = ClassDef(node, outer, node.name, bases)
    outer.vars[node.name] = defined
    machine.frame = Frame(node.name, outer)
    try:
        for statement in node.body:
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
                machine.frame.vars[statement.name] = _defined(machine, statement, outer)
            elif isinstance(statement, (ast.Assign, ast.AnnAssign, ast.ClassDef)):
                execute(machine, [statement])
        defined.attrs = machine.frame.vars
    finally:
        machine.frame = outer


def _import(machine: Machine, node: ast.Import | ast.ImportFrom) -> None:
    machine.frame.vars.update(imports.bindings(node))
    if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names):
        machine.stars.setdefault(machine.path, []).append("." * node.level + (node.module or ""))


_HANDLERS: dict[type[ast.stmt], Callable[[Machine, Any], None]] = {
    ast.Expr: _expression,
    ast.Assign: assignments.run_assign,
    ast.AnnAssign: assignments.run_annotated,
    ast.AugAssign: assignments.run_augmented,
    ast.If: _if,
    ast.For: _for,
    ast.AsyncFor: _for,
    ast.While: _while,
    ast.With: _with,
    ast.AsyncWith: _with,
    ast.Try: _try,
    ast.TryStar: _try,
    ast.Match: _match,
    ast.Return: _return,
    ast.Raise: _stop,
    ast.Break: _break,
    ast.Continue: _continue,
    ast.Delete: assignments.run_delete,
    ast.Global: _shared,
    ast.Nonlocal: _shared,
    ast.FunctionDef: _function,
    ast.AsyncFunctionDef: _function,
    ast.ClassDef: _class,
    ast.Import: _import,
    ast.ImportFrom: _import,
}
