"""Expressions, evaluated to abstract tensors and what surrounds them."""

from __future__ import annotations

import ast
import builtins
import operator
from collections.abc import Callable
from typing import Any, cast

from gradclinic.static.flow import calls
from gradclinic.static.flow.attributes import attribute_of
from gradclinic.static.flow.collections import items_of
from gradclinic.static.flow.functions import is_module
from gradclinic.static.flow.items import item_at, item_of, key_of, spread
from gradclinic.static.flow.joining import join
from gradclinic.static.flow.machine import Machine
from gradclinic.static.flow.neighbours import starred
from gradclinic.static.flow.padding import Filler, filled_up, filler_of
from gradclinic.static.flow.tensors import binary, scaled
from gradclinic.static.flow.values import (
    Alike,
    Chain,
    Either,
    Flow,
    Layer,
    Loss,
    Weights,
    as_tensor,
    made_of,
    shadowed,
)
from gradclinic.static.syntax import last_name
from gradclinic.static.values import (
    NONE,
    Const,
    Frame,
    Func,
    Instance,
    Map,
    Seq,
    Unknown,
    Value,
    library,
)  # fmt: skip
from gradclinic.static.walk import Arguments

_BUILTINS = {name: library(f"builtins.{name}") for name in dir(builtins)}


def evaluate(machine: Machine, node: ast.expr) -> Value:
    handler = _HANDLERS.get(type(node))
    return handler(machine, node) if handler is not None else Unknown(f"<{type(node).__name__}>")


def _name(machine: Machine, node: ast.Name) -> Value:
    frame: Frame | None = machine.frame
    while frame is not None:
        found = frame.vars.get(node.id)
        if found is not None:
            return found
        frame = frame.parent
    return _BUILTINS.get(node.id) or starred(machine, node.id) or shadowed(node.id)


def _attribute(machine: Machine, node: ast.Attribute) -> Value:
    return attribute_of(machine, evaluate(machine, node.value), node)


def _call(machine: Machine, node: ast.Call) -> Value:
    machine.tick()
    if isinstance(node.func, ast.Attribute):
        receiver = node.func.value
        if isinstance(receiver, ast.Call) and last_name(receiver.func) == "super":
            return calls.call_super(machine, node.func.attr, arguments(machine, node), node)
        base = evaluate(machine, receiver)
        machine.log.marks += node.func.attr in ("zero_grad", "step")
        return calls.call_method(machine, base, node.func.attr, arguments(machine, node), node)
    func = evaluate(machine, node.func)
    return calls.call(machine, func, arguments(machine, node), node, last_name(node.func))


def arguments(machine: Machine, node: ast.Call) -> Arguments:
    args = Arguments()
    for item in node.args:
        if isinstance(item, ast.Starred):
            value = evaluate(machine, item.value)
            known = items_of(value)
            if known is not None and not isinstance(value, Alike):
                args.positional += known
            else:
                args.partial = True
        else:
            args.positional.append(evaluate(machine, item))
    for keyword in node.keywords:
        value = evaluate(machine, keyword.value)
        if keyword.arg is not None:
            args.keywords[keyword.arg] = value
        elif isinstance(value, Map):
            args.keywords.update({key: held for key, held in value.items.items() if isinstance(key, str)})
        else:
            args.partial = True
    return args


def _binary(machine: Machine, node: ast.BinOp) -> Value:
    return combine(machine, node, evaluate(machine, node.left), node.op, evaluate(machine, node.right))


def combine(machine: Machine, node: ast.AST, left: Value, op: ast.operator, right: Value) -> Value:
    left, right = as_tensor(left), as_tensor(right)
    if isinstance(left, (Flow, Weights)) or isinstance(right, (Flow, Weights)):
        return binary(machine, node, left, op, right)
    if isinstance(op, ast.Add) and isinstance(left, Filler) is not isinstance(right, Filler):
        return filled_up(left, right) if isinstance(right, Filler) else filled_up(right, cast(Filler, left))
    if isinstance(left, Seq) and isinstance(right, Seq) and isinstance(op, ast.Add):
        return Seq([*left.items, *right.items])
    if isinstance(left, Seq) and isinstance(op, ast.Mult):
        return filler_of(node, left) or Seq(list(left.items))
    if isinstance(left, Const) and isinstance(right, Const) and type(left.value) is type(right.value) is int:
        if isinstance(op, ast.Add):
            return Const(left.value + right.value)
        if isinstance(op, ast.Sub):
            return Const(left.value - right.value)
    return made_of("<sum>", left, right)


def _unary(machine: Machine, node: ast.UnaryOp) -> Value:
    value = evaluate(machine, node.operand)
    if isinstance(node.op, ast.Not):
        known = truth(value)
        return Unknown("<not>") if known is None else Const(not known)
    if isinstance(value, Flow):
        return scaled(machine, machine.at(node), "neg", value, Const(-1))
    if isinstance(value, Const) and type(value.value) is int and isinstance(node.op, ast.USub):
        return Const(-value.value)
    return value


def tested(machine: Machine, node: ast.expr) -> bool | None:
    """Whether a condition holds; who asks whether something is there has looked at it."""
    value = evaluate(machine, node)
    if isinstance(value, Flow) and value.unchecked is not None:
        machine.log.checked.add(value.unchecked)
    return truth(value)


def truth(value: Value) -> bool | None:
    return bool(value.value) if isinstance(value, Const) else None


def _boolean(machine: Machine, node: ast.BoolOp) -> Value:
    values = [evaluate(machine, part) for part in node.values]
    known = [truth(value) for value in values]
    stop = isinstance(node.op, ast.Or)
    if stop in known and None not in known[: known.index(stop)]:
        return values[known.index(stop)]
    if None not in known:
        return values[-1]
    result = values[0]
    for other in values[1:]:
        result = join(result, other, "<either>")
    return result if not isinstance(result, Const) else Unknown("<either>")


def _compare(machine: Machine, node: ast.Compare) -> Value:
    left = evaluate(machine, node.left)
    rights = [evaluate(machine, other) for other in node.comparators]
    if len(rights) != 1:
        return Unknown("<comparison>")
    op, right = node.ops[0], rights[0]
    if isinstance(left, Const) and isinstance(right, Const):
        if isinstance(op, (ast.Eq, ast.Is)):
            return Const(left.value == right.value)
        if isinstance(op, (ast.NotEq, ast.IsNot)):
            return Const(left.value != right.value)
        numbers = all(type(one.value) in (int, float) for one in (left, right))
        if numbers and type(op) in _ORDERS and _is_of_model(machine, node.left):
            return Const(_ORDERS[type(op)](left.value, right.value))
    if isinstance(left, Flow) and left.unchecked is not None:
        machine.log.checked.add(left.unchecked)
        return Unknown("<comparison>")
    there = isinstance(left, (Flow, Layer, Chain, Loss, Instance, Func, Seq, Map, Weights))
    if there and isinstance(right, Const) and right.value is None and isinstance(op, (ast.Is, ast.IsNot)):
        return Const(isinstance(op, ast.IsNot))
    return Unknown("<comparison>")


_ORDERS: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def _is_of_model(machine: Machine, node: ast.expr) -> bool:
    """`net.n_classes` before any loop: what a model was built with. Other numbers may be counters."""
    if not isinstance(node, ast.Attribute) or machine.loops or last_name(node.value) == "self":
        return False
    base = evaluate(machine, node.value)
    return all(
        isinstance(option, Instance) and is_module(option.cls)
        for option in (base.options if isinstance(base, Either) else [base])
    )


def _conditional(machine: Machine, node: ast.IfExp) -> Value:
    known = tested(machine, node.test)
    if known is not None:
        return evaluate(machine, node.body if known else node.orelse)
    id = machine.new_id()
    with machine.arm(id, 0):
        one = evaluate(machine, node.body)
    with machine.arm(id, 1):
        other = evaluate(machine, node.orelse)
    return join(one, other, "<either>")


def _sequence(machine: Machine, node: ast.List | ast.Tuple | ast.Set) -> Value:
    items: list[Value] = []
    for item in node.elts:
        if isinstance(item, ast.Starred):
            value = evaluate(machine, item.value)
            known = items_of(value)
            items += known if known is not None else [value]
        else:
            items.append(evaluate(machine, item))
    return Seq(items)


def _mapping(machine: Machine, node: ast.Dict) -> Value:
    items: dict[object, Value] = {}
    for index, (key, value) in enumerate(zip(node.keys, node.values, strict=True)):
        held = evaluate(machine, value)
        if key is None:
            items.update(held.items if isinstance(held, Map) else {})
        else:
            items[key_of(evaluate(machine, key), (index,))] = held
    return Map(items)


def _subscript(machine: Machine, node: ast.Subscript) -> Value:
    base = evaluate(machine, node.value)
    index = evaluate(machine, node.slice) if not isinstance(node.slice, ast.Slice) else NONE
    return item_at(base, node, index)


def _comprehension(machine: Machine, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> Value:
    results: list[Value] = []
    known = _generate(machine, node.generators, lambda: results.append(evaluate(machine, node.elt)))
    if known or not results:
        return Seq(results)
    return Alike(results[:1])


def _dict_comprehension(machine: Machine, node: ast.DictComp) -> Value:
    results: dict[object, Value] = {}

    def add() -> None:
        results[key_of(evaluate(machine, node.key), (len(results),))] = evaluate(machine, node.value)

    _generate(machine, node.generators, add)
    return Map(results)


def _generate(machine: Machine, generators: list[ast.comprehension], done: Callable[[], None]) -> bool:
    """Run `done` for each item; False when how many there are is not known."""
    if not generators:
        done()
        return True
    outer = machine.frame
    machine.frame = Frame(outer.qualname, outer, owner=outer.owner)
    try:
        source = evaluate(machine, generators[0].iter)
        items = items_of(source)
        known = items is not None and not isinstance(source, (Alike, Weights)) and not generators[0].ifs
        for item in (items if items is not None else [item_of(source)])[:6]:
            machine.tick()
            bind(machine, generators[0].target, item)
            for condition in generators[0].ifs:
                tested(machine, condition)
            known = _generate(machine, generators[1:], done) and known
        return known
    finally:
        machine.frame = outer


def bind(machine: Machine, target: ast.expr, value: Value) -> None:
    """Give `value` to a loop target or an unpacked name; attributes are the business of statements."""
    if isinstance(target, ast.Name):
        machine.frame.vars[target.id] = value
    elif isinstance(target, (ast.Tuple, ast.List)):
        for part, held in zip(target.elts, spread(value, target.elts), strict=True):
            bind(machine, part, held)
    elif isinstance(target, ast.Starred):
        bind(machine, target.value, value)


def _named_expression(machine: Machine, node: ast.NamedExpr) -> Value:
    value = machine.frame.vars[node.target.id] = evaluate(machine, node.value)
    return value


def _inner(machine: Machine, node: Any) -> Value:
    return evaluate(machine, node.value) if node.value is not None else NONE


_HANDLERS: dict[type[ast.expr], Callable[[Machine, Any], Value]] = {
    ast.Constant: lambda machine, node: Const(node.value),
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Call: _call,
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.BoolOp: _boolean,
    ast.Compare: _compare,
    ast.IfExp: _conditional,
    ast.List: _sequence,
    ast.Tuple: _sequence,
    ast.Set: _sequence,
    ast.Dict: _mapping,
    ast.Subscript: _subscript,
    ast.Lambda: lambda machine, node: Func(node, machine.frame, "<lambda>"),
    ast.ListComp: _comprehension,
    ast.SetComp: _comprehension,
    ast.GeneratorExp: _comprehension,
    ast.DictComp: _dict_comprehension,
    ast.NamedExpr: _named_expression,
    ast.Await: _inner,
    ast.Starred: _inner,
    ast.Yield: _inner,
    ast.YieldFrom: _inner,
}
