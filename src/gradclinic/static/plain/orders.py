"""Inputs and labels that are shuffled one by one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise

from gradclinic.facts.stored import ReorderedApart
from gradclinic.frozen import frozen
from gradclinic.static.plain.scopes import Scope, scopes
from gradclinic.static.syntax import last_name, names_in

_TARGETS = re.compile(r"(^|_)(y|ys|Y|labels?|targets?)($|_)")
_INPUTS = re.compile(r"(^|_)(x|xs|X|data|inputs?|images?|imgs?|features?|feats?)($|_)")
_DRAWS = frozenset({"randperm", "permutation"})
_REORDERS = frozenset({"shuffle", "permutation"})
_REORDERING = tuple(
    re.compile(rf"{word}\((?<!\w{word}\()") for word in ("randperm", "permutation", "shuffle")
)
"""Of data: `pixel_shuffle(` is a layer."""
_SEEDS = frozenset({"seed", "manual_seed", "set_state", "setstate", "set_rng_state", "RandomState"})
NEAR = 3
"""Lines between two shuffles that are meant as one."""


@frozen
class _Shuffle:
    name: str
    node: ast.Call
    line: int


def may_tell(text: str) -> bool:
    places = sorted(found.start() for pattern in _REORDERING for found in pattern.finditer(text))
    return any(text.count("\n", one, other) <= NEAR for one, other in pairwise(places))


def read(tree: ast.Module, text: str, path: str) -> Iterator[ReorderedApart]:
    for scope in scopes(tree):
        # An order that something is put in is not put in order itself.
        orders = {node.slice for node in scope.nodes if isinstance(node, ast.Subscript)}
        shuffles = [
            found for node in scope.nodes if node not in orders and (found := _shuffle(node)) is not None
        ]
        seeds = [call.lineno for call in scope.calls() if last_name(call.func) in _SEEDS]
        for first, second in pairwise(shuffles):
            apart = any(first.line <= line <= second.line for line in seeds)
            if not apart and 0 <= second.line - first.line <= NEAR and _pair(first.name, second.name):
                yield _told(first, second, scope, path)


def _shuffle(node: ast.AST) -> _Shuffle | None:
    """`x[torch.randperm(n)]`, `random.shuffle(x)`, `np.random.permutation(x)`: what is put in a new order."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Call):
        call = node.slice
        if last_name(call.func) in _DRAWS and not _seeded(call):
            return _Shuffle(last_name(node.value), call, node.lineno)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _REORDERS:
        by_random = names_in(node.func)[-1:] in (["np"], ["numpy"], ["random"])
        if by_random and len(node.args) == 1 and not node.keywords:
            return _Shuffle(last_name(node.args[0]), node, node.lineno)
    return None


def _seeded(call: ast.Call) -> bool:
    """A generator that is passed may be set to the same state each time."""
    return any(keyword.arg == "generator" for keyword in call.keywords)


def _pair(one: str, other: str) -> bool:
    """`x_train` and `y_train`, `images` and `labels`: not two inputs, and not of two parts of the data."""
    return any(
        _INPUTS.search(inputs)
        and _TARGETS.search(targets)
        and not _TARGETS.search(inputs)
        and _rest(inputs, _INPUTS) == _rest(targets, _TARGETS)
        for inputs, targets in ((one, other), (other, one))
    )


def _rest(name: str, part: re.Pattern[str]) -> str:
    """`train` of `x_train`."""
    return part.sub("_", name, count=1).strip("_")


def _told(first: _Shuffle, second: _Shuffle, scope: Scope, path: str) -> ReorderedApart:
    names = (first.name, second.name)
    inputs, targets = names if _TARGETS.search(second.name) else names[::-1]
    return ReorderedApart(inputs, targets, scope.at(first.node, path), scope.at(second.node, path))
