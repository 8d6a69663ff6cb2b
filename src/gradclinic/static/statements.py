"""Statements, executed for their effect on names, on the path, and on the tape."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from gradclinic.facts import EventKind
from gradclinic.static import assignments, branches, contexts, engines, loops, modules, supposing, words
from gradclinic.static.abilities import Can
from gradclinic.static.conditions import (
    OF_GRADIENTS,
    asks_gradients,
    begins_later,
    chosen,
    condition_of,
    holds,
    name_of,
    truth,
)
from gradclinic.static.expressions import evaluate, lookup
from gradclinic.static.joining import joined
from gradclinic.static.syntax import last_name, names_in
from gradclinic.static.values import (
    NONE,
    Both,
    ClassDef,
    Engine,
    Frame,
    Func,
    Lib,
    Value,
)  # fmt: skip
from gradclinic.static.walk import BreakLoop, ContinueLoop, ReturnValue, Stop, Walk


def execute(walk: Walk, body: list[ast.stmt]) -> None:
    for statement in body:
        if walk.relevance.idle(statement):
            continue
        walk.tick()
        handler = _HANDLERS.get(type(statement))
        if handler is not None:
            handler(walk, statement)


def _expression(walk: Walk, node: ast.Expr) -> None:
    if not isinstance(node.value, ast.Constant):
        walk.for_effect = node.value
        evaluate(walk, node.value)


def _if(walk: Walk, node: ast.If) -> None:
    survey = walk.survey
    if node in survey.exits:
        if _is_taken(walk, node.test):
            raise BreakLoop
        return
    shape = survey.branches.get(node)
    if shape is None:
        shape = survey.branches[node] = branches.shape_of(survey, node)
    # A program that raises trains nothing: the path to walk is the one that goes on.
    if shape.stops or shape.resumes:
        execute(walk, node.orelse)
        return
    if shape.else_stops:
        evaluate(walk, node.test)
        execute(walk, node.body)
        return
    test = evaluate(walk, node.test)
    known = truth(test)
    if known is None and node in survey.last_exits:
        return
    if known is None:
        known = True if branches.is_main(node.test) else shape.finite
    if known is not False and branches.ends_loop(node) and not walk.leaves_early():
        early = known is None or (branches.counts(node.test) and walk.steps_in_loop())
        known = False if early else known
    # `if warm and epoch == 0: schedule = ...` has one at times: the tape differs, and joining would lose it.
    parts_ways = shape.can & (Can.ACT | Can.LEAVE) or (shape.casts and isinstance(test, Both))
    by_choice = known is None and not walk.summarising and bool(parts_ways)
    if by_choice:
        known = holds(walk, test)
    if known is None:
        known = supposing.answered(walk, test)
    if known is None:
        _both(walk, node, test)
        return
    guarded = bool(words.SCALE_ASKED.search(name_of(test)))
    later = [name_of(test)] if begins_later(test, known) else []
    arm = node.body if known else node.orelse
    skips = bool(arm) and isinstance(arm[-1], (ast.Continue, ast.Return))
    if asks_gradients(test) and (skips or _steps_otherwise(walk, node, arm)):
        walk.emit(EventKind.SKIP, node)
    walk.scale_guarded += guarded
    walk.skipping += skips
    walk.later += later
    by_choice = by_choice and bool(walk.loops)
    walk.by_choice += by_choice
    try:
        execute(walk, arm)
    finally:
        walk.by_choice -= by_choice
        del walk.later[len(walk.later) - len(later) :]
        walk.scale_guarded -= guarded
        walk.skipping -= skips


def _is_taken(walk: Walk, test: ast.expr) -> bool:
    """`if args.test: break` on a path that has said it only tests: a setting, which the loop leaves alone."""
    asked = test.operand if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else test
    if not walk.choices.asked or not walk.loops or not isinstance(asked, (ast.Name, ast.Attribute)):
        return False
    inside = walk.survey.facts(walk.loops[-1][2])
    if inside is None or not inside.assigns.isdisjoint(names_in(asked)):
        return False
    value = evaluate(walk, test)
    if truth(value) is not None or isinstance(value, Both):
        return False
    condition, wanted = condition_of(value)
    return walk.choices.asked.get(condition) is wanted


def _steps_otherwise(walk: Walk, node: ast.If, taken: list[ast.stmt]) -> bool:
    other = node.orelse if taken is node.body else node.body
    return bool(walk.survey.can_any(other) & ~walk.survey.can_any(taken) & Can.STEP)


def _both(walk: Walk, node: ast.If, test: Value) -> None:
    """Run both branches of a condition that changes nothing but values, and join what they leave."""
    before, known = dict(walk.frame.vars), len(walk.recorder.actors)
    with supposing.Branch(walk, test, taken=True):
        leave_first = _quietly(walk, node.body)
    after_first, walk.frame.vars = walk.frame.vars, before
    leave_second = False
    if node.orelse:
        with supposing.Branch(walk, test, taken=False):
            leave_second = _quietly(walk, node.orelse)
    if leave_first and not leave_second:
        return
    if leave_second and not leave_first:
        walk.frame.vars = after_first
        return
    after_second = walk.frame.vars
    for name, one in after_first.items():
        other = after_second.get(name)
        if one is not other:
            by = f" {OF_GRADIENTS}" if asks_gradients(test) else ""
            path = f"<{name}@{node.lineno}{by}>"
            after_second[name] = chosen(test, one, other, path) or joined(walk, one, other, path, known)


def _quietly(walk: Walk, body: list[ast.stmt]) -> bool:
    """True when the branch left by itself."""
    before = len(walk.recorder.drafts)
    try:
        execute(walk, body)
    except (ReturnValue, BreakLoop, ContinueLoop, Stop):
        walk.recorder.forget(EventKind.REPLACE, since=before)
        return True
    return False


def _with(walk: Walk, node: ast.With | ast.AsyncWith) -> None:
    leaving: list[Callable[[], None]] = []
    try:
        for item in node.items:
            walk.for_effect = item.context_expr
            value, leave = contexts.enter(walk, item.context_expr)
            leaving.append(leave)
            if item.optional_vars is not None:
                assignments.assign(walk, item.optional_vars, value)
        execute(walk, node.body)
    finally:
        for leave in reversed(leaving):
            leave()


def _try(walk: Walk, node: ast.Try) -> None:
    try:
        try:
            execute(walk, node.body)
        except Stop:
            if not node.handlers:
                raise
            execute(walk, node.handlers[0].body)
        else:
            execute(walk, node.orelse)
    finally:
        execute(walk, node.finalbody)


def _match(walk: Walk, node: ast.Match) -> None:
    subject = name_of(evaluate(walk, node.subject))
    for index, case in enumerate(node.cases):
        last = index == len(node.cases) - 1
        if last or walk.decide(f"{subject} matches {ast.unparse(case.pattern)}"):
            execute(walk, case.body)
            return


def _return(walk: Walk, node: ast.Return) -> None:
    if not walk.frame.qualname:
        return  # Astray in a cell of a notebook, which is not run; those after it are
    value = evaluate(walk, node.value) if node.value is not None else NONE
    if walk.returned and walk.summarising:
        walk.returned[-1].append(value)
    raise ReturnValue(value)


def _raise(walk: Walk, node: ast.Raise) -> None:
    raise Stop


def _break(walk: Walk, node: ast.Break) -> None:
    raise BreakLoop


def _continue(walk: Walk, node: ast.Continue) -> None:
    raise ContinueLoop


def _shared(walk: Walk, node: ast.Global | ast.Nonlocal) -> None:
    walk.frame.shared.update(node.names)


def _function(walk: Walk, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    defined = walk.frame.vars[node.name] = _defined(walk, node, walk.frame)
    for part in node.decorator_list:
        if isinstance(part, ast.Call) and part.args and isinstance(part.func, ast.Attribute):
            engine = evaluate(walk, part.func.value) if part.func.attr == "on" else None
            if isinstance(engine, Engine):
                engines.attach(walk, engine, part.args[0], defined)


def _defined(walk: Walk, node: ast.FunctionDef | ast.AsyncFunctionDef, frame: Frame) -> Func:
    decorators = tuple(_decorator(walk, item) for item in node.decorator_list)
    qualname = walk.survey.qualnames.get(node, node.name)
    return Func(node, frame, qualname, decorators=decorators)


def _decorator(walk: Walk, node: ast.expr) -> str:
    inner = node.func if isinstance(node, ast.Call) else node
    if isinstance(inner, ast.Name):
        value = lookup(walk.frame, inner.id)
        return value.name if isinstance(value, Lib) else inner.id
    return last_name(inner)


def _class(walk: Walk, node: ast.ClassDef) -> None:
    outer = walk.frame
    bases = tuple(
        modules.resolved(walk, evaluate(walk, base))
        for base in node.bases
        if not isinstance(base, ast.Starred)
    )
    defined = ClassDef(node, outer, node.name, bases)
    outer.vars[node.name] = defined
    walk.frame = Frame(f"{node.name}", outer)
    try:
        for statement in node.body:
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
                method = _defined(walk, statement, outer)
                if "setter" not in method.decorators:  # of a property, which is there already
                    walk.frame.vars[statement.name] = method
            elif isinstance(statement, (ast.Assign, ast.AnnAssign, ast.ClassDef)):
                execute(walk, [statement])
        defined.attrs = walk.frame.vars
    finally:
        walk.frame = outer


def _import(walk: Walk, node: ast.Import | ast.ImportFrom) -> None:
    walk.frame.vars.update(modules.bindings(walk, node))


_HANDLERS: dict[type[ast.stmt], Callable[[Walk, Any], None]] = {
    ast.Expr: _expression,
    ast.Assign: assignments.run_assign,
    ast.AnnAssign: assignments.run_annotated,
    ast.AugAssign: assignments.run_augmented,
    ast.If: _if,
    ast.For: loops.run_for,
    ast.AsyncFor: loops.run_for,
    ast.While: loops.run_while,
    ast.With: _with,
    ast.AsyncWith: _with,
    ast.Try: _try,
    ast.TryStar: _try,
    ast.Match: _match,
    ast.Return: _return,
    ast.Raise: _raise,
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
