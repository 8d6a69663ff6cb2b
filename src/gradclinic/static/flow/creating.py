"""Tensors made of nothing, of numbers, and of other tensors put together."""

from __future__ import annotations

import ast

from gradclinic.facts import Op
from gradclinic.static.flow import torch_names as torch
from gradclinic.static.flow.padding import known_padding
from gradclinic.static.flow.tensors import new_leaf
from gradclinic.static.flow.values import NOTHING, Alike, Flow
from gradclinic.static.values import Const, Seq, Value
from gradclinic.static.walk import Arguments

_SIZED = (torch.COPYING | frozenset({"zeros", "ones", "empty", "rand", "randn"})) - {"tensor"}
"""Are given extents, not values."""


def created(args: Arguments, *, blank: bool) -> Flow:
    extents = args.positional
    if len(extents) == 1 and isinstance(extents[0], Seq):
        extents = extents[0].items
    elif args.positional and isinstance(args.positional[-1], Seq):
        extents = args.positional[-1].items
    axes = len(extents) if not args.partial and len(extents) > 1 else None
    leaf = is_true(args.keywords.get("requires_grad"))
    made = Flow(grad=False, axes=axes, batched=axes is not None, blank=blank and not leaf)
    return new_leaf(made) if leaf else made


def filled(name: str, args: Arguments) -> object:
    """What a new tensor is full of."""
    if name in _SIZED and _is_of_none(args):
        return NOTHING
    value = args.get(1, "fill_value") if name == "full" else None
    number = value.value if isinstance(value, Const) else None
    return 0 if name == "zeros" else number if type(number) is int else None


def _is_of_none(args: Arguments) -> bool:
    """`torch.empty(0)`, `torch.zeros((0, 4))`, `torch.Tensor()`."""
    rows = args.positional[0] if args.positional else Const(0)
    extent = rows.items[0] if isinstance(rows, Seq) and rows.items else rows
    return isinstance(extent, Const) and type(extent.value) is int and extent.value == 0


def is_size(args: Arguments) -> bool:
    """`torch.Tensor(3, 4)` and `torch.FloatTensor(n, m)` are given extents, not values."""
    return len(args.positional) > 1 or (isinstance(args.positional[0], Const) and not args.keywords)


def padded(args: Arguments, node: ast.Call) -> Flow:
    filler = args.get(2, "padding_value") or Const(0)
    if isinstance(filler, Const) and type(filler.value) is float:
        filler = Const(int(filler.value))
    by_position = node.args[2] if len(node.args) > 2 else None
    written = next((item.value for item in node.keywords if item.arg == "padding_value"), by_position)
    known = known_padding(filler, written)
    return Flow(grad=False, padded=known.value if known is not None and not args.partial else None)


def that_are_there(source: Value) -> Value:
    """Without the empty tensor that a loop over parts begins with."""
    items = source.items if isinstance(source, Seq) and not isinstance(source, Alike) else []
    left = [item for item in items if not (isinstance(item, Flow) and item.filled is NOTHING)]
    return Seq(left) if left else source


def alike(source: Value) -> tuple[Op, ...]:
    items = source.items if isinstance(source, Seq) else []
    trails = [item.ops for item in items if isinstance(item, Flow)]
    same = trails and len(trails) == len(items) and all(t and t[0].name == trails[0][0].name for t in trails)
    return trails[0] if same else ()


def is_true(value: Value | None) -> bool:
    return isinstance(value, Const) and value.value is True
