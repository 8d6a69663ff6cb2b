"""Statements, executed for their effect on names, on the path, and on the tape."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from gradclinic.facts import EventKind
from gradclinic.static import branches, contexts, holdings, loops, modules, supposing, words
from gradclinic.static.abilities import Can
from gradclinic.static.arithmetic import as_one, binary, with_unit
from gradclinic.static.conditions import holds, name_of, truth
from gradclinic.static.expressions import evaluate, lookup, spread
from gradclinic.static.gradients import assign_gradient, write_weights
from gradclinic.static.joining import joined
from gradclinic.static.syntax import last_name, pairs_up
from gradclinic.static.values import (
    NONE,
    ActorRef,
    Both,
    ClassDef,
    Const,
    Frame,
    Func,
    Grad,
    Instance,
    Lib,
    Map,
    Model,
    Num,
    Params,
    Seq,
    Tensor,
    Unknown,
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


def _assign(walk: Walk, node: ast.Assign) -> None:
    value = _valued(walk, node.value, node.targets[0])
    for target in node.targets:
        assign(walk, target, value)


def _annotated(walk: Walk, node: ast.AnnAssign) -> None:
    if node.value is not None:
        assign(walk, node.target, _valued(walk, node.value, node.target))


def _valued(walk: Walk, value: ast.expr, target: ast.expr) -> Value:
    if isinstance(value, ast.Tuple) and isinstance(target, ast.Tuple) and pairs_up(value, target):
        # `self.actor, self.critic = Actor(), Critic()`: each is called by a name of its own.
        return Seq([_valued(walk, *pair) for pair in zip(value.elts, target.elts, strict=True)])
    before, walk.assigning = walk.assigning, _label(target)
    try:
        return evaluate(walk, value)
    finally:
        walk.assigning = before


def _label(target: ast.expr) -> str:
    if isinstance(target, ast.Name):
        return target.id
    if isinstance(target, ast.Attribute):
        base = _label(target.value)
        return f"{base}.{target.attr}" if base else target.attr
    return ""


def assign(walk: Walk, target: ast.expr, value: Value) -> None:
    if isinstance(target, ast.Name):
        if isinstance(value, Tensor) and not value.loss and words.LOSS_NAME.search(target.id):
            value.loss = True
        if isinstance(value, Num):
            value = with_unit(value, target.id)
        value = holdings.loaded(value, walk.frame.vars.get(target.id), target.id)
        if isinstance(value, Model):
            holdings.rebound(walk, target, walk.frame.vars.get(target.id), value)
        _store(walk.frame, target.id, value)
    elif isinstance(target, ast.Attribute):
        base = evaluate(walk, target.value)
        _assign_attribute(walk, base, target, value)
    elif isinstance(target, (ast.Tuple, ast.List)):
        for part, held in zip(target.elts, spread(walk, value, target.elts), strict=True):
            assign(walk, part, held)
    elif isinstance(target, ast.Starred):
        assign(walk, target.value, value)
    elif isinstance(target, ast.Subscript):
        _assign_item(walk, target, value)


def _store(frame: Frame, name: str, value: Value) -> None:
    if name in frame.shared:
        holder = frame.parent
        while holder is not None and name not in holder.vars and holder.parent is not None:
            holder = holder.parent
        frame = holder or frame
    frame.vars[name] = value


def _assign_attribute(walk: Walk, base: Value, target: ast.Attribute, value: Value) -> None:
    if target.attr == "grad":
        owner = base if isinstance(base, Params) else Params(None)
        assign_gradient(walk, owner, value, target)
    elif isinstance(base, Params) and target.attr == "data":
        write_weights(walk, base, target)
    elif target.attr == "requires_grad":
        holdings.freeze(walk, base, value, target)
    elif isinstance(base, (Instance, Unknown, Model)):
        if isinstance(value, Num):
            value = with_unit(value, target.attr)
        value = holdings.loaded(value, base.attrs.get(target.attr), target.attr)
        if isinstance(base, Model):
            holdings.put_in(walk, base, f"{base.name}.{target.attr}", value, target)
        elif isinstance(value, Model):
            holdings.exchanged(walk, base.attrs, target.attr, value, target)
        if isinstance(base, Instance):
            value = _perhaps(walk, base.attrs.get(target.attr), value, target)
        base.attrs[target.attr] = value
        if isinstance(base, Instance) and isinstance(value, ActorRef):
            walk.recorder.rename(value.id, f"{_label(target)}")
        elif isinstance(value, ActorRef):
            walk.recorder.escapes(value.id)
    elif isinstance(base, Grad):
        assign_gradient(walk, base.of, value, target)


def _perhaps(walk: Walk, before: Value | None, value: Value, target: ast.Attribute) -> Value:
    """`if step >= most: self.finished = True`: of a flag that is set in a branch nobody knows to be taken."""
    if not walk.unsure or not isinstance(value, Const) or not isinstance(before, (Const, Unknown)):
        return value
    if name_of(before) == name_of(value):
        return value
    return before if isinstance(before, Unknown) else Unknown(f"<{target.attr}@{target.lineno}>")


def _assign_item(walk: Walk, target: ast.Subscript, value: Value) -> None:
    base = evaluate(walk, target.value)
    index = evaluate(walk, target.slice) if not isinstance(target.slice, ast.Slice) else NONE
    if isinstance(base, Map):
        key = index.value if isinstance(index, (Const, Num)) and index.value is not None else name_of(index)
        if isinstance(value, Model):
            holdings.exchanged(walk, base.items, key, value, target)
        base.items[key] = value
    elif isinstance(base, Model):
        holdings.put_in(walk, base, f"{base.name}[{name_of(index)}]", value, target)
        base.attrs[f"[{name_of(index)}]"] = value
    elif isinstance(base, Unknown):
        base.attrs[f"[{name_of(index)}]"] = value
    elif isinstance(base, Grad):
        assign_gradient(walk, base.of, None, target)


def _augmented(walk: Walk, node: ast.AugAssign) -> None:
    value = evaluate(walk, node.value)
    if isinstance(node.target, ast.Attribute) and node.target.attr == "grad":
        evaluate(walk, node.target.value)
        assign_gradient(walk, Params(None), None, node.target)
        return
    current = evaluate(walk, node.target)
    if isinstance(current, Grad):
        assign_gradient(walk, current.of, None, node.target)
        return
    if isinstance(current, Params) and not isinstance(value, (Params, Seq)):
        write_weights(walk, current, node.target)
        return
    if isinstance(node.op, ast.Add) and last_name(node.target) in walk.survey.tallies:
        value = as_one(value)
    if isinstance(current, Unknown) and isinstance(value, Num) and isinstance(node.op, ast.Add):
        current = Num(0, invented=True)
    assign(walk, node.target, binary(walk, current, node.op, value))


def _if(walk: Walk, node: ast.If) -> None:
    survey = walk.survey
    if node in survey.exits:
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
    if known is None:
        known = True if branches.is_main(node.test) else shape.finite
    if known is not False and branches.ends_loop(node) and not walk.leaves_early():
        early = known is None or (branches.counts(node.test) and walk.steps_in_loop())
        known = False if early else known
    # `if warm and epoch == 0: schedule = ...` has one at times: the tape differs, and joining would lose it.
    parts_ways = shape.can & (Can.ACT | Can.LEAVE) or (shape.casts and isinstance(test, Both))
    if known is None and not walk.summarising and parts_ways:
        known = holds(walk, test)
    if known is None:
        known = supposing.answered(walk, test)
    if known is None:
        _both(walk, node, test)
        return
    guarded = bool(words.SCALE_ASKED.search(name_of(test)))
    arm = node.body if known else node.orelse
    skips = bool(arm) and isinstance(arm[-1], (ast.Continue, ast.Return))
    walk.scale_guarded += guarded
    walk.skipping += skips
    try:
        execute(walk, arm)
    finally:
        walk.scale_guarded -= guarded
        walk.skipping -= skips


def _both(walk: Walk, node: ast.If, test: Value) -> None:
    """Run both branches of a condition that changes nothing but values, and join what they leave."""
    before, known = dict(walk.frame.vars), len(walk.recorder.actors)
    with supposing.branch(walk, test, taken=True):
        leave_first = _quietly(walk, node.body)
    after_first = walk.frame.vars
    walk.frame.vars = dict(before)
    with supposing.branch(walk, test, taken=False):
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
            after_second[name] = joined(walk, one, other, f"<{name}@{node.lineno}>", known)


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
                assign(walk, item.optional_vars, value)
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


def _delete(walk: Walk, node: ast.Delete) -> None:
    for target in node.targets:
        if isinstance(target, ast.Name):
            walk.frame.vars.pop(target.id, None)


def _shared(walk: Walk, node: ast.Global | ast.Nonlocal) -> None:
    walk.frame.shared.update(node.names)


def _function(walk: Walk, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    walk.frame.vars[node.name] = _defined(walk, node, walk.frame)


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
    ast.Assign: _assign,
    ast.AnnAssign: _annotated,
    ast.AugAssign: _augmented,
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
    ast.Delete: _delete,
    ast.Global: _shared,
    ast.Nonlocal: _shared,
    ast.FunctionDef: _function,
    ast.AsyncFunctionDef: _function,
    ast.ClassDef: _class,
    ast.Import: _import,
    ast.ImportFrom: _import,
}
