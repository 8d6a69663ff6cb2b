"""Expressions, evaluated to abstract values."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from gradclinic.static import arithmetic, calls, supposing
from gradclinic.static.abilities import Can
from gradclinic.static.attributes import get_attribute
from gradclinic.static.conditions import chosen, compare, holds, name_of, negate, truth
from gradclinic.static.held import items_by_name
from gradclinic.static.iteration import called_for, item_of, items_of, part_of
from gradclinic.static.joining import joined
from gradclinic.static.roles import infer
from gradclinic.static.syntax import last_name
from gradclinic.static.unpacking import spread
from gradclinic.static.values import (
    NONE,
    Both,
    Const,
    Frame,
    Func,
    Instance,
    Lib,
    Map,
    Model,
    Num,
    Params,
    Seq,
    Stream,
    Tensor,
    Unknown,
    Value,
)  # fmt: skip
from gradclinic.static.walk import Arguments, Walk

_SETTINGS_OF_A_GROUP = ("lr", "initial_lr", "weight_decay", "momentum", "betas", "eps")
_USUAL = {"torch": "torch", "nn": "torch.nn", "F": "torch.nn.functional", "optim": "torch.optim"}
"""What everybody calls these: a file may have them by a star import out of sight."""
_GIVEN = {name: Lib(f"builtins.{name}") for name in dir(builtins)} | {n: Lib(p) for n, p in _USUAL.items()}


def evaluate(walk: Walk, node: ast.expr) -> Value:
    handler = _HANDLERS.get(type(node))
    if handler is None:
        return Unknown(f"<{type(node).__name__}@{node.lineno}:{node.col_offset}>")
    return handler(walk, node)


def _constant(walk: Walk, node: ast.Constant) -> Value:
    return _literal(type(node.value).__name__, node.value)


@lru_cache(maxsize=4096)
def _literal(kind: str, value: object) -> Value:
    """One value for all places it is written at; `kind` tells 1 from True and from 1.0."""
    return Num(value) if kind == "int" else Const(value)  # type: ignore[arg-type]


def _name(walk: Walk, node: ast.Name) -> Value:
    name, frame = node.id, walk.frame
    found = frame.vars.get(name) or lookup(frame.parent, name) or _GIVEN.get(name)
    if found is not None:
        return found
    value = frame.module.vars[name] = infer(walk, name, name)
    return value


def lookup(frame: Frame | None, name: str) -> Value | None:
    while frame is not None:
        found = frame.vars.get(name)
        if found is not None:
            return found
        frame = frame.parent
    return None


def _attribute(walk: Walk, node: ast.Attribute) -> Value:
    return get_attribute(walk, evaluate(walk, node.value), node.attr)


def _call(walk: Walk, node: ast.Call) -> Value:
    if isinstance(node.func, ast.Attribute):
        if type(node.func.value) is ast.Call and _is_super(node.func.value):
            args = arguments(walk, node)
            return calls.call_super(walk, node.func.attr, args, node)
        base = evaluate(walk, node.func.value)
        return calls.call_method(walk, base, node.func.attr, arguments(walk, node), node)
    func = evaluate(walk, node.func)
    name = last_name(node.func)
    if name == "getattr" and isinstance(node.func, ast.Call):
        name = ""  # what is called bears a name that is not known
    return calls.call(walk, func, arguments(walk, node), node, name)


def _is_super(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Name) and node.func.id == "super"


def arguments(walk: Walk, node: ast.Call) -> Arguments:
    args = Arguments()
    for item in node.args:
        if isinstance(item, ast.Starred):
            value = evaluate(walk, item.value)
            if isinstance(value, Seq):
                args.positional += value.items
            elif isinstance(value, (Model, Params)):
                args.positional.append(value)
            else:
                args.partial = True
        else:
            args.positional.append(evaluate(walk, item))
    for keyword in node.keywords:
        value = evaluate(walk, keyword.value)
        if keyword.arg is not None:
            args.keywords[keyword.arg] = value
        else:
            args.partial = args.partial or not isinstance(value, Map)
            args.keywords.update(items_by_name(value))
    return args


def _binary(walk: Walk, node: ast.BinOp) -> Value:
    left, right = evaluate(walk, node.left), evaluate(walk, node.right)
    return arithmetic.written(walk, left, node.op, right, node.right)


def _unary(walk: Walk, node: ast.UnaryOp) -> Value:
    value = evaluate(walk, node.operand)
    if isinstance(node.op, ast.Not):
        return negate(value)
    if isinstance(node.op, ast.USub) and isinstance(value, Num) and value.value is not None:
        return Num(-value.value, value.invented, value.units)
    return value


def _boolean(walk: Walk, node: ast.BoolOp) -> Value:
    """`a and b`, deciding one part after the other as Python would."""
    stop = isinstance(node.op, ast.Or)
    value: Value = NONE
    unsure: list[Value] = []
    for part in node.values:
        value = evaluate(walk, part)
        known = truth(value)
        if known is None and arithmetic.asks_for_end(walk, node, part, value):
            known = walk.last_batch is stop
            value = Const(known)
        if known is None:
            unsure.append(value)
        elif known is stop:
            return value if not unsure or stop is False else Const(stop)
    if not unsure:
        return value
    if len(unsure) == 1:
        return unsure[0]
    return Both(unsure, either=stop)


def _compare(walk: Walk, node: ast.Compare) -> Value:
    left = evaluate(walk, node.left)
    result: Value = Const(True)
    for op, other in zip(node.ops, node.comparators, strict=True):
        right = evaluate(walk, other)
        result = (
            arithmetic.compare_period(walk, node, left, op, right)
            or arithmetic.compare_tally(walk, node, left, op, right)
            or compare(walk, left, op, right)
        )
        if truth(result) is False:
            return result
        left = right
    return result


def _conditional(walk: Walk, node: ast.IfExp) -> Value:
    test = evaluate(walk, node.test)
    known = truth(test)
    if known is None and (walk.can(node.body) | walk.can(node.orelse)) & Can.ACT and not walk.summarising:
        known = holds(walk, test)
    if known is None:
        known = supposing.answered(walk, test)
    if known is not None:
        return evaluate(walk, node.body if known else node.orelse)
    known_actors = len(walk.recorder.actors)
    with supposing.Branch(walk, test, taken=True):
        one = evaluate(walk, node.body)
    with supposing.Branch(walk, test, taken=False):
        other = evaluate(walk, node.orelse)
    if isinstance(one, Seq) and isinstance(other, Seq) and not (one.items and other.items):
        return one if one.items else other  # `["test"] if args.test else []`: the rest of a list, if any
    path = f"<either@{node.lineno}:{node.col_offset}>"
    return chosen(test, one, other, path) or joined(walk, one, other, path, known_actors)


def _sequence(walk: Walk, node: ast.List | ast.Tuple | ast.Set) -> Value:
    items: list[Value] = []
    for item in node.elts:
        if isinstance(item, ast.Starred):
            value = evaluate(walk, item.value)
            items += value.items if isinstance(value, Seq) else [value]
        else:
            items.append(evaluate(walk, item))
    return Seq(items)


def _mapping(walk: Walk, node: ast.Dict) -> Value:
    items: dict[object, Value] = {}
    for index, (key, value) in enumerate(zip(node.keys, node.values, strict=True)):
        held = evaluate(walk, value)
        if key is None:
            if isinstance(held, Map):
                items.update(held.items)
            continue
        named = evaluate(walk, key)
        items[_key(named, index)] = held
    return Map(items)


def _key(value: Value, otherwise: object) -> object:
    if isinstance(value, (Const, Num)) and value.value is not None:
        try:
            hash(value.value)
        except TypeError:
            return otherwise
        return value.value
    return (otherwise, name_of(value))


def _subscript(walk: Walk, node: ast.Subscript) -> Value:
    base = evaluate(walk, node.value)
    index = evaluate(walk, node.slice) if not isinstance(node.slice, ast.Slice) else NONE
    if isinstance(base, Seq):
        if (
            isinstance(index, Num)
            and index.value is not None
            and -len(base.items) <= index.value < len(base.items)
        ):
            return base.items[index.value]
        if isinstance(node.slice, ast.Slice):
            return base
        return base.items[0] if base.items else Unknown(f"<item@{node.lineno}>")
    if isinstance(base, Map):
        key = _key(index, None)
        path = f"{last_name(node.value) or name_of(base)}[{name_of(index)}]"
        return called_for(base.items.get(key) or Unknown(path), key)
    if isinstance(base, Params) and isinstance(index, Const) and index.value in _SETTINGS_OF_A_GROUP:
        return Unknown(f"<group>[{index.value}]")
    if isinstance(base, (Params, Tensor)):
        return base
    if isinstance(base, Model):
        key = f"[{name_of(index)}]"
        return base.attrs.setdefault(key, Model(frozenset(f"{k}.{key}" for k in base.keys), base.name + key))
    if isinstance(base, Unknown):
        # What a loop asks for by number is what another one goes over.
        key = "[]" if isinstance(index, Num) and "index" in index.units else f"[{name_of(index)}]"
        if key not in base.attrs:
            name = str(index.value) if isinstance(index, Const) and isinstance(index.value, str) else ""
            base.attrs[key] = infer(walk, name or last_name(node.value), base.path + key)
        return base.attrs[key]
    if isinstance(base, Stream):
        return part_of(walk, base, index)
    return Unknown(f"{name_of(base)}[{name_of(index)}]")


def _lambda(walk: Walk, node: ast.Lambda) -> Value:
    return Func(node, walk.frame, f"{walk.frame.qualname}.<lambda>".lstrip("."))


def _comprehension(walk: Walk, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> Value:
    results: list[Value] = []
    outer = walk.frame
    walk.frame = Frame(outer.qualname, outer, owner=outer.owner)
    try:
        _generate(walk, node.generators, lambda: results.append(evaluate(walk, node.elt)))
    finally:
        walk.frame = outer
    if len(results) == 1 and isinstance(results[0], Params):
        return results[0]
    return Seq(results)


def _dict_comprehension(walk: Walk, node: ast.DictComp) -> Value:
    results: dict[object, Value] = {}
    outer = walk.frame
    walk.frame = Frame(outer.qualname, outer, owner=outer.owner)

    def add() -> None:
        results[_key(evaluate(walk, node.key), len(results))] = evaluate(walk, node.value)

    try:
        _generate(walk, node.generators, add)
    finally:
        walk.frame = outer
    return Map(results)


def _generate(walk: Walk, generators: list[ast.comprehension], done: Callable[[], None]) -> None:
    if not generators:
        done()
        return
    source = evaluate(walk, generators[0].iter)
    known = items_of(walk, source, generators[0].target)
    # What goes over data between the batches is a pass of its own, as a loop is.
    sweeps = len(walk.sweeps)
    if known is None and not walk.batches:
        walk.sweeps.append(generators[0])
    for item in known or [item_of(walk, source, generators[0].target, 0)]:
        bind(walk, generators[0].target, item)
        for condition in generators[0].ifs:
            evaluate(walk, condition)
        _generate(walk, generators[1:], done)
    del walk.sweeps[sweeps:]


def bind(walk: Walk, target: ast.expr, value: Value) -> None:
    """Give `value` to a loop target or an unpacked name."""
    if isinstance(target, ast.Name):
        # What a loop calls `accum_step` is a place in the window, not the length of it.
        counts = isinstance(value, Num) and value.invented and "accumulation" in value.units
        walk.frame.vars[target.id] = Unknown(target.id) if counts else value
    elif isinstance(target, (ast.Tuple, ast.List)):
        for part, held in zip(target.elts, spread(walk, value, target.elts), strict=True):
            bind(walk, part, held)
    elif isinstance(target, ast.Starred):
        bind(walk, target.value, value)
    elif isinstance(target, ast.Attribute):  # `for self.epoch in range(self.start, self.end)`
        base = evaluate(walk, target.value)
        if isinstance(base, (Instance, Unknown)):
            base.attrs[target.attr] = value


def _named_expression(walk: Walk, node: ast.NamedExpr) -> Value:
    value = evaluate(walk, node.value)
    walk.frame.vars[node.target.id] = value
    return value


def _inner(walk: Walk, node: Any) -> Value:
    return evaluate(walk, node.value) if node.value is not None else NONE


def _text(walk: Walk, node: ast.JoinedStr) -> Value:
    return Const(f"<text@{node.lineno}:{node.col_offset}>")


_HANDLERS: dict[type[ast.expr], Callable[[Walk, Any], Value]] = {
    ast.Constant: _constant,
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
    ast.Lambda: _lambda,
    ast.ListComp: _comprehension,
    ast.SetComp: _comprehension,
    ast.GeneratorExp: _comprehension,
    ast.DictComp: _dict_comprehension,
    ast.NamedExpr: _named_expression,
    ast.Await: _inner,
    ast.Starred: _inner,
    ast.Yield: _inner,
    ast.YieldFrom: _inner,
    ast.JoinedStr: _text,
}
