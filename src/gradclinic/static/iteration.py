"""What comes out of an iterable, where its items are known."""

from __future__ import annotations

import ast
from dataclasses import replace

from gradclinic.static import words
from gradclinic.static.roles import ACTOR_ROLES, infer, role_of
from gradclinic.static.syntax import last_name
from gradclinic.static.values import (
    Const,
    Map,
    Model,
    Num,
    Params,
    Range,
    Seq,
    Stream,
    Tensor,
    Unknown,
    Value,
)  # fmt: skip
from gradclinic.static.walk import Walk

MOST_ITEMS = 6


def items_of(walk: Walk, source: Value, target: ast.expr) -> list[Value] | None:
    """The items of a known collection; None when only a loop can tell how many there are."""
    if isinstance(source, Seq):
        return source.items[:MOST_ITEMS]
    if isinstance(source, Map):
        names: list[Value] = [
            Const(key) if isinstance(key, str) else Unknown("<key>") for key in source.items
        ]
        return names[:MOST_ITEMS]
    if isinstance(source, (Params, Tensor)):
        return [source]
    if isinstance(source, Model):
        return [Model(frozenset(f"{key}.[]" for key in source.keys), f"{source.name}[]")]
    return None


def item_of(walk: Walk, source: Value, target: ast.expr, index: int) -> Value:
    """The item number `index` of a stream whose items are made up as they are asked for."""
    if isinstance(source, Range):
        known = isinstance(source.bound, Num) and source.bound.value is not None and not source.bound.invented
        units = (
            frozenset({"epoch"})
            if isinstance(source.bound, Num) and "epoch" in source.bound.units
            else frozenset()
        )
        return Num(source.start + index, invented=not known, units=units | {"index"})
    if isinstance(source, Stream) and source.counted:
        batch = _batch(walk, source.source or source, _second(target))
        return Seq([Num(source.start + index, invented=True, units=frozenset({"index"})), batch])
    return _batch(walk, source, target)


def called_for(item: Value, key: object) -> Value:
    """`loaders["val"]`: data that is held out, though all that makes it is named alike."""
    if not isinstance(item, Stream) or not isinstance(key, str) or not words.HELD_OUT.search(key):
        return item
    return item if words.HELD_OUT.search(item.path) else replace(item, path=f"{item.path}[{key!r}]")


def part_of(walk: Walk, source: Stream, index: Value) -> Value:
    """`train_parts["model"]` is no data, though its owner is called like some."""
    name = index.value if isinstance(index, Const) else None
    path = f"{source.path}[{'' if name is None else repr(name)}]"
    if isinstance(name, str) and role_of(walk.survey, name) in ("model", *ACTOR_ROLES):
        return source.attrs.setdefault(name, infer(walk, name, path))
    return Unknown(path)


def _second(target: ast.expr) -> ast.expr:
    return target.elts[1] if isinstance(target, ast.Tuple) and len(target.elts) == 2 else target


def _batch(walk: Walk, source: Value, target: ast.expr) -> Value:
    zipped = source.zipped if isinstance(source, Stream) else ()
    if isinstance(target, ast.Tuple) and len(zipped) == len(target.elts):
        # Each by the name that it has where it is gone over alone.
        rows = zip(zipped, target.elts, strict=True)
        return Seq([(items_of(walk, one, part) or [_batch(walk, one, part)])[0] for one, part in rows])
    if isinstance(source, Unknown) and isinstance(target, ast.Name):
        return infer(walk, target.id, f"{source.path}[]")
    path = source.path if isinstance(source, (Stream, Unknown)) else "data"
    return Unknown(f"{path}.{last_name(target) or 'batch'}")
