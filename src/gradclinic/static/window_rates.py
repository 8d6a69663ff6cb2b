"""Learning rates that are divided by the length of a window, so that its losses may be summed."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable

from gradclinic.static import words
from gradclinic.static.syntax import last_name, names_in, nodes_in

_RATE = words.Pattern(r"lr$|learning_?rate$|^lr_[a-z]+$")
_FACTORS = words.Pattern(r"^(LambdaLR|MultiplicativeLR|ConstantLR|LinearLR)$")
"""Schedules that multiply the rate by what they are given."""


def divides_rate(trees: Iterable[ast.Module], windows: Collection[str]) -> bool:
    """Whether a rate is divided by what counts the batches of a window; `windows` are names it has."""
    return any(_divides(node, windows) for tree in trees for node in nodes_in(tree))


def _divides(node: ast.AST, windows: Collection[str]) -> bool:
    if isinstance(node, ast.keyword):
        return node.arg is not None and bool(_RATE.search(node.arg)) and _by_window(node.value, windows)
    if isinstance(node, ast.Assign):
        return any(map(_is_rate, node.targets)) and _by_window(node.value, windows)
    if isinstance(node, ast.AugAssign):
        by = isinstance(node.op, ast.Div) and _speaks_of(node.value, windows)
        return _is_rate(node.target) and (by or _by_window(node.value, windows))
    if isinstance(node, ast.Dict):
        rates = [value for key, value in zip(node.keys, node.values, strict=True) if _is_named_rate(key)]
        return any(_by_window(value, windows) for value in rates)
    if isinstance(node, ast.Call):
        name = last_name(node.func)
        given = node.args[1:2] if name in words.TORCH_OPTIMIZERS or _FACTORS.match(name) else []
        given += [keyword.value for keyword in node.keywords if _FACTORS.match(name)]
        return any(_by_window(value, windows) for value in given)
    return isinstance(node, ast.BinOp) and _is_rate(node.left) and _by_window(node, windows)


def _by_window(value: ast.expr, windows: Collection[str]) -> bool:
    return any(
        isinstance(part, ast.BinOp) and isinstance(part.op, ast.Div) and _speaks_of(part.right, windows)
        for part in nodes_in(value)
    )


def _speaks_of(node: ast.expr, windows: Collection[str]) -> bool:
    return any(name in windows or words.ACCUMULATION_NAME.search(name) for name in names_in(node))


def _is_rate(target: ast.expr) -> bool:
    if isinstance(target, ast.Subscript):
        return _is_named_rate(target.slice)
    return bool(_RATE.search(last_name(target)))


def _is_named_rate(key: ast.expr | None) -> bool:
    return isinstance(key, ast.Constant) and isinstance(key.value, str) and bool(_RATE.search(key.value))
