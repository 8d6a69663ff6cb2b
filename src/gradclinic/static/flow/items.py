"""What comes out of a collection: by a subscript, by unpacking, by a loop."""

from __future__ import annotations

import ast

from gradclinic.static import words
from gradclinic.static.flow.collections import Counted, items_of
from gradclinic.static.flow.joining import join
from gradclinic.static.flow.padding import Loader, kept_padding
from gradclinic.static.flow.tensors import reshaped
from gradclinic.static.flow.values import (
    SOME_LAYER,
    Alike,
    Chain,
    Flow,
    Forms,
    Index,
    Listed,
    Lists,
    Weights,
    as_tensor,
    changed,
    found_in,
    made_of,
    shadowed,
    unpacked,
)
from gradclinic.static.syntax import last_name
from gradclinic.static.values import Const, Lib, Map, Seq, Unknown, Value
from gradclinic.static.walk import Arguments

MOST_JOINED = 32
"""Only tables of settings are longer, and are asked again and again."""


def item_at(base: Value, node: ast.Subscript, index: Value) -> Value:
    if isinstance(base, Forms):
        return _any_of([item_at(option, node, index) for option in base.options])
    if isinstance(base, Flow):
        return _sliced(base, node, index)
    if isinstance(base, (Seq, Chain, Listed)):
        items = base.items if isinstance(base, Seq) else base.parts
        if isinstance(base, Alike):
            return items[0] if items else Unknown("<item>")
        if isinstance(node.slice, ast.Slice):
            return _slice_of(base, items, node.slice)
        position = index.value if isinstance(index, (Const, Index)) and type(index.value) is int else None
        if position is not None and -len(items) <= position < len(items):
            return items[position]
        return _any_of(items)
    if isinstance(base, Map):
        if isinstance(base, Lists):
            return base.items.setdefault(key_of(index, "<key>"), Seq([]))
        found = base.items.get(key_of(index, None))
        return found if found is not None else _any_of(list(base.items.values()))
    if isinstance(base, Weights):
        return base
    if isinstance(base, Lib) and base.name.endswith(".__dict__"):
        return named_in(base.name.removesuffix(".__dict__"), index)
    if isinstance(base, Unknown):
        return found_in(base, Unknown(f"{base.path}[]", kept_padding(base, node.slice), base.holds))
    return Unknown("<item>")


def named_in(module: str, name: Value) -> Value:
    """`models.__dict__[args.arch]`, `getattr(models, args.arch)`: whichever it is, torchvision made it."""
    if isinstance(name, Const):
        return Lib(f"{module}.{name.value}")
    if module == "torchvision.models":
        return Lib(f"{module}.<one>")
    return Unknown(SOME_LAYER if module == "torch.nn" else "<named>")


def _any_of(items: list[Value]) -> Value:
    if not items:
        return shadowed("<item>")
    if len(items) > MOST_JOINED:
        items = [*items[: MOST_JOINED // 2], *items[-MOST_JOINED // 2 :]]
    result = items[0]
    for other in items[1:]:
        result = join(result, other, "<item>")
    return result


def _slice_of(base: Seq | Chain | Listed, items: list[Value], part: ast.Slice) -> Value:
    bounds = [_constant_bound(bound) for bound in (part.lower, part.upper)]
    if part.step is not None or None in (bounds[0] if part.lower else 0, bounds[1] if part.upper else 0):
        return Seq([_any_of(items)]) if isinstance(base, Seq) else Unknown("<layers>")
    kept = items[bounds[0] if part.lower else None : bounds[1] if part.upper else None]
    return Seq(kept) if isinstance(base, Seq) else Chain(kept)


def _constant_bound(node: ast.expr | None) -> int | None:
    try:
        value = ast.literal_eval(node) if node is not None else None
    except (ValueError, TypeError, SyntaxError):
        return None
    return value if type(value) is int else None


def _sliced(flow: Flow, node: ast.Subscript, index: Value) -> Flow:
    """Rows and columns of a tensor; picking by a mask or by lengths takes the padding out."""
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    if isinstance(index, Const) and isinstance(index.value, str):
        return changed(flow)  # Of a batch that is a dictionary
    plain = all(isinstance(part, ast.Slice) for part in parts)
    if plain:
        return changed(flow, reshaped=True)
    return reshaped(flow, padded=None)


def key_of(value: Value, otherwise: object) -> object:
    if isinstance(value, (Const, Index)) and isinstance(value.value, (str, int, float, bool)):
        return value.value
    return otherwise


def item_of(source: Value) -> Value:
    """One item of something that is not known: a batch, if it sounds like a loader."""
    if isinstance(source, Alike) and source.items:
        return source.items[0]
    if isinstance(source, Loader):
        return source.batch
    if isinstance(source, Counted):
        path = source.path
        return Seq([Unknown("<index>"), _batch(path[10:-1], source)])
    source = as_tensor(source)
    if isinstance(source, Flow):
        return reshaped(source)
    return _batch(source.path if isinstance(source, Unknown) else "", source)


def zipped(args: Arguments) -> Value:
    """`zip(outputs, targets)`: as many rows as there are in what is known."""
    known = [None if isinstance(value, Alike) else items_of(value) for value in args.positional]
    if args.partial or not known:
        return Unknown("zip()")
    lengths = [len(row) for row in known if row is not None]
    rows: list[Value] = [
        Seq(
            [
                item_of(value) if row is None else row[index]
                for value, row in zip(args.positional, known, strict=True)
            ]
        )
        for index in range(min(lengths, default=1))
    ]
    return Seq(rows) if lengths else Alike(rows)


def _batch(path: str, source: Value) -> Value:
    if words.LOADER_NAME.search(path.rsplit(".", 1)[-1]):
        return Flow(grad=False, batched=True)
    return found_in(source, Unknown(f"{path}[]", holds=source.holds if isinstance(source, Unknown) else ()))


def is_share(node: int) -> bool:
    """Whether it is what was unpacked of something, and no whole."""
    return node <= -(1 << 32)


def _share(whole: Flow, target: ast.expr) -> int:
    """A graph node for what is unpacked here of this very value, apart from all that are counted."""
    return -(max(whole.nodes, default=0) << 32 | target.lineno << 10 | target.col_offset) - 1


def spread(value: Value, targets: list[ast.expr]) -> list[Value]:
    """The values that `targets` get from unpacking `value`."""
    value = unpacked(value, len(targets))
    if isinstance(value, Alike) and value.items:
        return [value.items[0]] * len(targets)
    starred = any(isinstance(target, ast.Starred) for target in targets)
    if isinstance(value, Seq) and not starred and len(value.items) == len(targets):
        return value.items
    if isinstance(value, Flow):
        # Each is a part of its own: what becomes of one says nothing of the others. Data has none to share.
        parts = [frozenset({_share(value, target)} if value.nodes else ()) for target in targets]
        return [changed(value, ops=(), reshaped=True, axes=None, nodes=value.nodes | part) for part in parts]
    if isinstance(value, Weights):
        return [value] * len(targets)
    return [found_in(value, made_of(last_name(target), value)) for target in targets]
