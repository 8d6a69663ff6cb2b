"""Statements: every branch is run and joined, every loop goes around twice."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from gradclinic.static import imports, words
from gradclinic.static.flow import contexts
from gradclinic.static.flow.calls import log_write
from gradclinic.static.flow.collections import call_collection, items_of
from gradclinic.static.flow.expressions import bind, combine, evaluate, tested, truth
from gradclinic.static.flow.heads import LAST, is_last
from gradclinic.static.flow.hierarchies import base_of
from gradclinic.static.flow.items import item_of, key_of, spread
from gradclinic.static.flow.joining import join
from gradclinic.static.flow.machine import Kept, Machine
from gradclinic.static.flow.padding import begins_row, makes_batches, number_behind
from gradclinic.static.flow.tensors import new_leaf, overwritten, reshaped
from gradclinic.static.flow.totals import adds_to_itself, restarted
from gradclinic.static.flow.values import NO_IDS, Alike, Flow, Listed, Weights, changed
from gradclinic.static.syntax import last_name
from gradclinic.static.values import (
    NONE,
    ClassDef,
    Const,
    Frame,
    Func,
    Instance,
    Map,
    Seq,
    Unknown,
    Value,
)  # fmt: skip
from gradclinic.static.walk import Arguments, BreakLoop, ContinueLoop, ReturnValue, Stop

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


def _assign(machine: Machine, node: ast.Assign) -> None:
    if isinstance(node.value, ast.BinOp) and adds_to_itself(node.targets[0], node.value):
        current = evaluate(machine, node.value.left)
        _add_up(machine, node, node.targets[0], current, evaluate(machine, node.value.right))
        return
    value = evaluate(machine, node.value)
    for target in node.targets:
        assign(machine, target, value)


def _annotated(machine: Machine, node: ast.AnnAssign) -> None:
    if node.value is not None:
        assign(machine, node.target, evaluate(machine, node.value))


def assign(machine: Machine, target: ast.expr, value: Value) -> None:
    if isinstance(target, ast.Name):
        if isinstance(value, Flow) and not value.known and words.LOSS_NAME.search(target.id):
            value = changed(value, scalar=True)
        _store(machine, target.id, value)
    elif isinstance(target, ast.Attribute):
        _store_attribute(machine, evaluate(machine, target.value), target, value)
    elif isinstance(target, (ast.Tuple, ast.List)):
        for part, held in zip(target.elts, spread(value, target.elts), strict=True):
            assign(machine, part, held)
    elif isinstance(target, ast.Starred):
        assign(machine, target.value, value)
    elif isinstance(target, ast.Subscript):
        _store_item(machine, target, value)


def _store(machine: Machine, name: str, value: Value) -> None:
    frame = machine.frame
    if name in frame.shared:
        holder = frame.parent
        while holder is not None and name not in holder.vars and holder.parent is not None:
            holder = holder.parent
        if holder is not None:
            machine.let_out(value)
            holder.vars[name] = _perhaps(machine, holder.vars.get(name), value, name)
        return
    frame.vars[name] = value


def _perhaps(machine: Machine, before: Value | None, value: Value, name: str) -> Value:
    """What is seen from outside this branch: the new value or the old one."""
    return join(before, value, name) if machine.branch and before is not None else value


def _store_attribute(machine: Machine, base: Value, target: ast.Attribute, value: Value) -> None:
    if isinstance(base, Flow):
        if target.attr == "requires_grad" and truth(value) is not False:
            new_leaf(base)
    elif isinstance(base, Weights) and target.attr == "data":
        log_write(machine, base, target)
    elif isinstance(base, (Instance, Unknown)):
        machine.let_out(value)
        base.attrs[target.attr] = _perhaps(machine, base.attrs.get(target.attr), value, target.attr)


def _store_item(machine: Machine, target: ast.Subscript, value: Value) -> None:
    base = evaluate(machine, target.value)
    index = evaluate(machine, target.slice) if not isinstance(target.slice, ast.Slice) else NONE
    machine.let_out(value)
    if isinstance(base, Map):
        key = key_of(index, None)
        if key is None:
            base.items.clear()
        else:
            base.items[key] = _perhaps(machine, base.items.get(key), value, "<item>")
    elif isinstance(base, Seq) and not isinstance(base, Alike):
        base.items[:] = [join(item, value, "<item>") for item in base.items]
    elif isinstance(base, Unknown) and is_last(base, index):
        base.attrs[LAST] = _perhaps(machine, base.attrs.get(LAST, Unknown(base.path)), value, "<item>")
    elif isinstance(base, Flow) and isinstance(target.value, ast.Name):
        _write_into(machine, target, base, value)


def _write_into(machine: Machine, target: ast.Subscript, base: Flow, value: Value) -> None:
    """`tokens[row, length:] = 0` fills up a row; any other write leaves something unknown."""
    name = target.value.id  # type: ignore[attr-defined]
    parts = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
    last = parts[-1] if parts else None
    fills = isinstance(last, ast.Slice) and last.lower is not None and last.upper is None and len(parts) > 1
    if fills and isinstance(value, Const) and type(value.value) is int and base.grad is False:
        machine.frame.vars[name] = changed(base, padded=value.value)
    elif (
        begins_row(parts)
        and makes_batches(machine.frame.qualname)
        and number_behind(base) is not None
        and isinstance(value, (Flow, Unknown))
    ):
        held = value if isinstance(value, Flow) and base.blank else join(base, value, name)
        assert isinstance(held, Flow)
        number = number_behind(base)
        machine.frame.vars[name] = reshaped(held, scalar=False, losses=NO_IDS, padded=number)
    elif base.blank and base.grad is False and isinstance(value, Flow) and value.form == "tensor":
        # Row by row it becomes what is written to it.
        machine.frame.vars[name] = reshaped(
            value, scalar=False, cut=None, terms=(), paths=(), losses=NO_IDS, padded=None
        )
    else:
        machine.frame.vars[name] = join(base, value if isinstance(value, Flow) else Unknown(name), name)


_SPELLED: dict[type[ast.operator], str] = {ast.Add: "+=", ast.Sub: "-=", ast.Mult: "*=", ast.Div: "/="}


def _augmented(machine: Machine, node: ast.AugAssign) -> None:
    current, value = evaluate(machine, node.target), evaluate(machine, node.value)
    if isinstance(current, Weights) and current.raw:
        log_write(machine, current, node)
        return
    if isinstance(current, Flow):
        overwritten(machine, current, machine.at(node), _SPELLED.get(type(node.op), "in-place operator"))
    if type(current) is Seq and isinstance(value, Seq) and isinstance(node.op, ast.Add):
        call_collection(machine, current, "extend", Arguments([value]), machine.at(node))
    elif isinstance(node.op, ast.Add):
        _add_up(machine, node, node.target, current, value)
    else:
        assign(machine, node.target, combine(machine, node, current, node.op, value))


def _add_up(machine: Machine, node: ast.stmt, target: ast.expr, current: Value, value: Value) -> None:
    result = combine(machine, node, current, ast.Add(), value)
    if isinstance(value, Flow) and isinstance(result, Flow) and not restarted(machine, node, target):
        into = current if isinstance(current, Flow) else None
        log = machine.log
        log.kept.append(Kept(machine.at(node), value, into, 0, machine.branch, len(log.uses), log.marks))
    assign(machine, target, result)


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
        raise left
    joined = ends[0]
    for other in ends[1:]:
        for name, two in other.items():
            one = joined.get(name)
            if one is not two:
                joined[name] = join(one, two, name)
    before.clear()
    before.update(joined)
    frame.vars = before


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
                assign(machine, item.optional_vars, value)
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


def _delete(machine: Machine, node: ast.Delete) -> None:
    for target in node.targets:
        if isinstance(target, ast.Name):
            machine.frame.vars.pop(target.id, None)
        elif isinstance(target, ast.Subscript):
            held = evaluate(machine, target.value)
            if isinstance(held, Flow) and isinstance(target.value, ast.Name):
                machine.frame.vars[target.value.id] = changed(held, certain=False)
            elif isinstance(held, Seq) and isinstance(target.slice, ast.Slice):
                machine.log.emptied.add(id(held))
                held.items.clear()


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
    ast.Assign: _assign,
    ast.AnnAssign: _annotated,
    ast.AugAssign: _augmented,
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
    ast.Delete: _delete,
    ast.Global: _shared,
    ast.Nonlocal: _shared,
    ast.FunctionDef: _function,
    ast.AsyncFunctionDef: _function,
    ast.ClassDef: _class,
    ast.Import: _import,
    ast.ImportFrom: _import,
}
