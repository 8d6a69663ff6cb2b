"""Functions of Python that call what they are given: `map`, `reduce`, `methodcaller`, `partial`."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TypeAlias

from gradclinic.static.abilities import ACTS, Can
from gradclinic.static.iteration import items_of
from gradclinic.static.values import (
    NONE,
    ActorRef,
    Bound,
    Const,
    Func,
    Lib,
    Model,
    Partial,
    Seq,
    Unknown,
    Value,
    library,
)  # fmt: skip
from gradclinic.static.walk import Arguments, Walk

Call: TypeAlias = Callable[[Walk, Value, Arguments, ast.Call, str], Value]
_METHOD = library("operator.methodcaller")
_OF_OPTIMIZERS = ("torch.optim.",)
_METHODS = frozenset({"step", "zero_grad"})


def apply(walk: Walk, name: str, args: Arguments, node: ast.Call, call: Call) -> Value | None:
    """What such a function gives once it has called what it was given; None for other functions."""
    given = args.positional
    if name == "functools.partial" and given:
        return Partial(given[0], given[1:], args.keywords)
    if name == _METHOD.name and given and isinstance(given[0], Const):
        return Partial(_METHOD, given, args.keywords)
    if name == "builtins.map" and len(given) > 1 and _acts(walk, given[0]):
        return Seq([call(walk, given[0], Arguments(row), node, "") for row in _rows(walk, given[1:])])
    if name == "itertools.starmap" and len(given) == 2 and _acts(walk, given[0]):
        rows = [row[0] for row in _rows(walk, given[1:])]
        handed = [row.items if isinstance(row, Seq) else [row] for row in rows]
        return Seq([call(walk, given[0], Arguments(row), node, "") for row in handed])
    if name == "functools.reduce" and len(given) > 1 and _acts(walk, given[0]):
        result: Value = given[2] if len(given) > 2 else NONE
        for row in _rows(walk, given[1:2]):
            result = call(walk, given[0], Arguments([result, *row]), node, "")
        return result
    if name in ("itertools.chain", "itertools.chain.from_iterable"):
        parts = given[0].items if name.endswith("iterable") and given and isinstance(given[0], Seq) else given
        if parts and all(isinstance(part, Seq) for part in parts):
            return Seq([item for part in parts if isinstance(part, Seq) for item in part.items])
    return None


def call_partial(walk: Walk, func: Partial, args: Arguments, node: ast.Call, name: str, call: Call) -> Value:
    handed = Arguments([*func.args, *args.positional], {**func.keywords, **args.keywords}, args.partial)
    if func.func is not _METHOD:
        return call(walk, func.func, handed, node, name)
    attr, *rest = func.args
    assert isinstance(attr, Const)
    if not args.positional:
        return Unknown(f"methodcaller({attr.value})")
    return call(walk, Bound(args.positional[0], str(attr.value)), Arguments(rest, func.keywords), node, name)


def unbound(name: str, args: Arguments) -> Value | None:
    """`torch.optim.Optimizer.step(optimizer)`, as the method of what it is given; None for other calls."""
    attr = name.rpartition(".")[2]
    first = args.positional[0] if args.positional else None
    known = name.startswith(_OF_OPTIMIZERS) or (isinstance(first, Model) and name.startswith("torch.nn."))
    return Bound(first, attr) if attr in _METHODS and known and isinstance(first, (ActorRef, Model)) else None


def _acts(walk: Walk, function: Value) -> bool:
    """Whether it is worth calling for what it does: what it merely gives is not needed of many."""
    if isinstance(function, Func):
        return bool(walk.can(function.node) & Can.ACT)
    if isinstance(function, Partial):
        asked = function.args[0] if function.func is _METHOD else NONE
        return _acts(walk, function.func) or (isinstance(asked, Const) and asked.value in ACTS)
    if isinstance(function, Lib):
        return function.name.startswith(_OF_OPTIMIZERS) and function.name.rpartition(".")[2] in _METHODS
    return isinstance(function, Bound) and function.attr in ACTS


def _rows(walk: Walk, sources: list[Value]) -> list[list[Value]]:
    anything = ast.Name("item", ast.Load())
    columns = [items_of(walk, source, anything) or [source] for source in sources]
    return [list(row) for row in zip(*columns, strict=False)]
