"""Rows filled up to one length: by hand in a list, by a function that collates, by a dataset."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import field
from types import NoneType

from gradclinic.frozen import record
from gradclinic.static import words
from gradclinic.static.flow.values import Alike, Flow, flows_in, shadowed
from gradclinic.static.syntax import last_name
from gradclinic.static.values import NONE, Const, Func, Instance, Map, Seq, Unknown, Value
from gradclinic.static.walk import Arguments

_FILLED_UP = "<filled up>"
"""What an Unknown holds the number by that its end is filled up with."""
_NAMED = words.Pattern(r"^(?!.*(label|ignor|target|tgt|mask|tag)).*pad", re.I)
"""What a number is called that fills up rows of words."""
_LOOKED_UP = words.Pattern(r"\[\]$|\.pad_token_id$")
"""What stands in a vocabulary is no negative number, so a loss leaves it out only if it is told to."""
_SHORTFALL = words.Pattern(r"pad|missing|remain|short", re.I)
_MAKES_BATCHES = words.Pattern(r"collat|pad|batch|__getitem__|tensor", re.I)


@record
class Filler(Seq):
    """`[PAD] * (longest - len(row))`"""


@record
class Loader(Unknown):
    """A loader whose batches are known."""

    batch: Value = field(default_factory=lambda: NONE)


def filler_of(node: ast.AST, items: Seq) -> Value | None:
    """A number repeated as often as a row is short of a length; other repetitions may be labels."""
    if not isinstance(node, ast.BinOp) or len(items.items) != 1:
        return None
    written = node.left.elts[0] if isinstance(node.left, ast.List) else None
    number = known_padding(items.items[0], written)
    if number is None:
        return None
    count = node.right
    short = isinstance(count, ast.BinOp) and isinstance(count.op, ast.Sub)
    return Filler([number]) if short or _SHORTFALL.search(last_name(count)) else None


def known_padding(value: Value, written: ast.expr | None) -> Const | None:
    """A whole number, or how one is written that a vocabulary knows."""
    if isinstance(value, Const):
        return value if type(value.value) is int else None
    if not isinstance(value, Unknown) or not isinstance(written, (ast.Name, ast.Attribute, ast.Subscript)):
        return None
    text, path = ast.unparse(written), value.path
    of_words = _LOOKED_UP.search(path) and not words.SETTINGS.search(path)
    return Const(text) if of_words and _NAMED.search(text) else None


def kept_padding(row: Unknown, part: ast.expr) -> dict[str, Value]:
    """What `row[1:]` and `row[:-1]` are still filled up with."""
    whole = isinstance(part, ast.Slice) and all(
        bound is None or isinstance(bound, ast.Constant | ast.UnaryOp) for bound in (part.lower, part.upper)
    )
    return {_FILLED_UP: row.attrs[_FILLED_UP]} if whole and _FILLED_UP in row.attrs else {}


def filled_up(row: Value, filler: Filler) -> Value:
    """`row + [PAD] * (longest - len(row))`, either way around; not `[1] + [0] * (classes - 1)`."""
    if isinstance(row, Seq) and row.items and all(isinstance(item, Const) for item in row.items):
        return Seq([*row.items, *filler.items])
    made = shadowed("<row>") if flows_in(row) else Unknown("<row>")
    made.attrs[_FILLED_UP] = filler.items[0]
    return made


def fill_up(row: Value, filler: Value) -> None:
    """`row.extend([PAD] * (longest - len(row)))`"""
    if isinstance(row, Unknown) and isinstance(filler, Filler):
        row.attrs[_FILLED_UP] = filler.items[0]


def padding_of(value: Value, depth: int = 2) -> object:
    """The number that the rows in `value` are filled up with."""
    if isinstance(value, Flow):
        return value.padded
    if isinstance(value, Filler):
        number: Value | None = value.items[0]
    elif isinstance(value, Seq):
        found = [padding_of(item, depth - 1) for item in value.items] if depth else []
        return next((one for one in found if one is not None), None)
    else:
        number = value.attrs.get(_FILLED_UP) if isinstance(value, Unknown) else None
    return number.value if isinstance(number, Const) else None


def number_behind(rows: Flow) -> object:
    """What the ends of rows are filled with that are written from their beginnings."""
    return rows.filled if rows.blank and rows.grad is False else rows.padded


def makes_batches(function: str) -> bool:
    """By its name; elsewhere what rows are not written to may be a class, as the background is."""
    return bool(_MAKES_BATCHES.search(function))


def begins_row(parts: list[ast.expr]) -> bool:
    """`rows[i, :length]`: what comes after stays what it was."""
    last = parts[-1] if len(parts) > 1 else None
    return (
        isinstance(last, ast.Slice)
        and last.lower is None
        and not isinstance(last.upper, (ast.Constant, NoneType))
    )


def loaded(args: Arguments, run: Callable[[Value, Arguments], Value]) -> Value | None:
    """The loader of a dataset in sight, if its batches are seen to be filled up."""
    dataset, collate = args.get(0, "dataset"), args.get(6, "collate_fn")
    sample: Value = Unknown("<sample>")
    if isinstance(dataset, Instance):
        pick = dataset.cls.find("__getitem__")
        if isinstance(pick, Func):
            sample = run(pick.of(dataset), Arguments([Unknown("index")]))
    batch = _stacked(sample) if collate is None else run(collate, Arguments([Alike([sample])]))
    if all(flow.padded is None for flow in flows_in(batch)):
        return None
    return Loader("torch.utils.data.DataLoader()", batch=batch)


def _stacked(sample: Value) -> Value:
    """What torch makes of many samples by itself."""
    if isinstance(sample, Seq):
        return Seq([_stacked(item) for item in sample.items])
    if isinstance(sample, Map):
        return Map({key: _stacked(item) for key, item in sample.items.items()})
    return Flow(grad=False, batched=True, padded=sample.padded if isinstance(sample, Flow) else None)
