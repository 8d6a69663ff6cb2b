"""Lists, dicts, and Python's own functions."""

from __future__ import annotations

import ast

from gradclinic.facts import CutKind, Location
from gradclinic.static.containers import call_mapping
from gradclinic.static.flow.joining import join
from gradclinic.static.flow.machine import Kept, Machine
from gradclinic.static.flow.padding import Filler, Loader
from gradclinic.static.flow.tensors import cut_off, derived, summed
from gradclinic.static.flow.values import (
    IDENTITY,
    Alike,
    Either,
    Flow,
    Index,
    Layer,
    Listed,
    Lists,
    Weights,
    flows_in,
)
from gradclinic.static.syntax import most_items
from gradclinic.static.values import NONE, ClassDef, Const, Lib, Map, Seq, Unknown, Value
from gradclinic.static.walk import Arguments

MOST_HELD = 64


def perhaps(machine: Machine, value: Value) -> Value:
    """A layer added in one branch only may be missing."""
    return Either([value, IDENTITY]) if machine.branch and isinstance(value, Layer) else value


def call_collection(machine: Machine, base: Seq | Map, attr: str, args: Arguments, node: ast.AST) -> Value:
    first = args.positional[0] if args.positional else NONE
    if isinstance(base, Map):
        if attr in ("clear", "pop"):
            machine.log.emptied.update(map(id, base.items.values()))
        return _mapping(base, attr, args)
    if attr in ("append", "extend"):
        log = machine.log
        for flow in _telling(machine, first):
            log.holders.append(base)  # for another list may get its id
            where = machine.kept_at(node, flow)
            most = most_items(machine.loops[-1], node) if machine.loops else None
            branch = machine.branch
            log.kept.append(Kept(where, flow, None, id(base), branch, len(log.uses), log.marks, most))
    if attr == "append":
        if len(base.items) < MOST_HELD:
            base.items.append(perhaps(machine, first))
    elif attr == "extend" and isinstance(first, Filler):
        base.items.append(first)
    elif attr == "extend":
        base.items += first.items if isinstance(first, Seq) else [first]
        del base.items[MOST_HELD:]
    elif attr == "insert" and len(args.positional) == 2:
        base.items.insert(0, args.positional[1])
    elif attr in ("clear", "pop"):
        machine.log.emptied.add(id(base))
        if attr == "pop":
            return base.items[-1] if base.items else Unknown("<item>")
        base.items.clear()
    return NONE


def _telling(machine: Machine, value: Value) -> list[Flow]:
    """Of several values put in as one, what tells of all: the loss that a backward began at, or the first
    that has a graph."""
    flows = [flow for flow in flows_in(value) if flow.grad is not False]
    ends = [use.flow.nodes for use in machine.log.uses if use.whole] if len(flows) > 1 else []
    return [flow for flow in flows if flow.nodes in ends][:1] or flows[:1]


def _mapping(base: Map, attr: str, args: Arguments) -> Value:
    return Map(dict(base.items)) if attr == "copy" else call_mapping(base, attr, args)


def ordered(args: Arguments) -> Value:
    """`OrderedDict([("name", value), ...])`"""
    first = args.positional[0] if args.positional else NONE
    if isinstance(first, Map):
        return first
    items: dict[object, Value] = dict(args.keywords.items())
    for index, pair in enumerate(first.items if isinstance(first, Seq) else []):
        if not isinstance(pair, Seq) or len(pair.items) != 2:
            return Unknown("OrderedDict()")
        key = pair.items[0]
        items[key.value if isinstance(key, Const) else (index,)] = pair.items[1]
    return (
        Map(items)
        if args.keywords or isinstance(first, Seq) or not args.positional
        else Unknown("OrderedDict()")
    )


def of_lists(args: Arguments) -> Value:
    made = args.positional[0] if args.positional else NONE
    lists = isinstance(made, Lib) and made.name == "builtins.list"
    return Lists({}) if lists and len(args.all()) == 1 else Unknown("defaultdict()")


def named_tuple(machine: Machine, args: Arguments) -> ClassDef | None:
    """`namedtuple("Output", ["logits", "features"])`, as the class that it makes."""
    name, fields = (args.get(0, "typename"), args.get(1, "field_names"))
    said = fields.items if isinstance(fields, Seq) else [fields]
    words = [value.value for value in said if isinstance(value, Const) and isinstance(value.value, str)]
    if not isinstance(name, Const) or len(words) != len(said):
        return None
    names = " ".join(words).replace(",", " ").split()
    body = "\n".join(f"    {one}: object" for one in names if one.isidentifier())
    (node,) = ast.parse(f"class Named:\n{body or '    pass'}").body
    assert isinstance(node, ast.ClassDef)
    return ClassDef(node, machine.frame, str(name.value))


def call_builtin(machine: Machine, name: str, args: Arguments, node: ast.Call) -> Value:
    first = args.positional[0] if args.positional else NONE
    if name in ("float", "int") and isinstance(first, Flow):
        return cut_off(first, CutKind.ITEM, machine.at(node), form="number")
    if name == "sum":
        return _sum(machine, first, machine.at(node))
    if name in ("list", "tuple", "iter", "reversed", "sorted", "set"):
        if isinstance(first, Listed):
            return Seq(list(first.parts))
        return first if args.positional else Seq([])
    if name == "dict":
        return Map(dict(args.keywords.items())) if not args.positional else first
    if name == "len":
        return (
            Const(len(first.items))
            if isinstance(first, Seq) and not isinstance(first, Alike)
            else Unknown("len()")
        )
    if name == "range":
        return _range(args)
    if name == "enumerate":
        items = items_of(first)
        if isinstance(first, Loader):
            return Alike([Seq([Unknown("<index>"), first.batch])])
        if items is not None:
            pairs: list[Value] = [Seq([Index(index), item]) for index, item in enumerate(items)]
            return Alike(pairs) if isinstance(first, Alike) else Seq(pairs)
        return Counted(f"enumerate({getattr(first, 'path', '')})", holds=getattr(first, "holds", ()))
    if name in ("max", "min", "abs", "round", "pow") and flows_in(first):
        return derived(machine, None, args.positional)
    if name in ("print", "str", "isinstance", "hasattr", "type", "repr", "format", "bool"):
        return Unknown(f"{name}()")
    return Unknown(f"{name}()", holds=getattr(first, "holds", ()))


class Counted(Unknown):
    """`enumerate` of something whose items are not known."""


def items_of(value: Value) -> list[Value] | None:
    """The items of a known collection."""
    if isinstance(value, Alike):
        return [value.items[0]]
    if isinstance(value, Seq):
        return value.items
    if isinstance(value, Listed):
        return value.parts
    if isinstance(value, Map):
        return [Const(key) for key in value.items]
    return [value] if isinstance(value, Weights) else None


def _range(args: Arguments) -> Value:
    last = args.positional[-1] if 1 <= len(args.positional) <= 2 else Unknown("<stop>")
    first = args.positional[0] if len(args.positional) == 2 else Const(0)
    if isinstance(last, Const) and isinstance(first, Const) and type(last.value) is type(first.value) is int:
        count = last.value - first.value
        if 0 <= count <= 2:
            return Seq([Index(first.value + index) for index in range(count)])
    return Seq([Index(0), Index(1)])


def _sum(machine: Machine, source: Value, where: Location) -> Value:
    items = items_of(source)
    if not items:
        return Unknown("sum()", holds=getattr(source, "holds", ()))
    if not flows_in(source) and not any(isinstance(item, Weights) for item in items):
        result: Value = items[0]
        for other in items[1:]:
            result = join(result, other, "sum()")
        return result
    result = items[0] if isinstance(items[0], Flow) else derived(machine, None, [items[0]])
    for other in items[1:]:
        result = summed(machine, where, result, other)
    return result
