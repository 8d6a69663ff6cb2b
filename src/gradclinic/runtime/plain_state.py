"""Reading in the source of a module which of its plain tensors were made of data."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

_REDUCTIONS = frozenset(
    [
        "mean",
        "std",
        "var",
        "std_mean",
        "var_mean",
        "min",
        "max",
        "amin",
        "amax",
        "aminmax",
        "median",
        "nanmean",
        "quantile",
        "nanquantile",
        "lstsq",
        "svd",
        "eigh",
        "pca_lowrank",
        "cov",
    ]
)
_HANDS_ON = frozenset(
    [
        "clone",
        "detach",
        "float",
        "double",
        "to",
        "cpu",
        "as_tensor",
        "tensor",
        "from_numpy",
        "view",
        "reshape",
        "unsqueeze",
    ]
)
_STATISTIC = re.compile(r"mean|mu\b|std|sigma|var|scale|shift|offset|cent|min|max|lb|ub|norm|stat|avg")


@dataclass(frozen=True, slots=True)
class Assigned:
    line: int
    text: str
    given: bool
    """Handed in from outside as it is, rather than computed from what was handed in."""


def made_of_data(owner: ast.ClassDef) -> dict[str, Assigned]:
    """Attributes that some method fits to an argument, is given, or moves a little at each call, and that
    another one reads."""
    found: dict[str, Assigned] = {}
    for method in owner.body:
        if isinstance(method, ast.FunctionDef):
            for name, value, line in _assignments(method):
                given = _from_arguments(method, value, name)
                if given is not None or _moves(value, name):
                    found.setdefault(name, Assigned(line, ast.unparse(value), bool(given)))
            for name, value, line in _written_in_place(method):
                found.setdefault(name, Assigned(line, ast.unparse(value), given=False))
    return {name: how for name, how in found.items() if name in attributes_read(owner)}


def _assignments(method: ast.FunctionDef) -> Iterator[tuple[str, ast.expr, int]]:
    for node in ast.walk(method):
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            continue
        target, value = node.targets[0], node.value
        pairs = [(target, value)]
        if isinstance(target, ast.Tuple):
            values = value.elts if isinstance(value, ast.Tuple) else [value] * len(target.elts)
            pairs = list(zip(target.elts, values, strict=False))
        for one, its in pairs:
            if isinstance(one, ast.Attribute) and _is_self(one.value):
                yield one.attr, its, node.lineno


def _written_in_place(method: ast.FunctionDef) -> Iterator[tuple[str, ast.expr, int]]:
    """`self.mean.mul_(0.9).add_(...)`, `self.mean.lerp_(...)`."""
    for node in ast.walk(method):
        if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
            continue
        inner: ast.expr = node.value
        called = set()
        while isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute):
            called.add(inner.func.attr)
            inner = inner.func.value
        mixes = "lerp_" in called or {"mul_", "add_"} <= called
        if mixes and isinstance(inner, ast.Attribute) and _is_self(inner.value):
            yield inner.attr, node.value, node.lineno


def _from_arguments(method: ast.FunctionDef, value: ast.expr, name: str) -> bool | None:
    """True when `value` is an argument, False when it is a statistic of one, None when it is neither."""
    if method.name == "forward":
        return None
    arguments = {one.arg for one in (*method.args.args, *method.args.kwonlyargs)} - {"self"}
    local = {
        node.targets[0].id: node.value
        for node in ast.walk(method)
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)
    }
    if isinstance(value, ast.Name) and value.id in local and value.id not in arguments:
        value = local[value.id]
    named = {node.id for node in ast.walk(value) if isinstance(node, ast.Name)}
    calls = {
        node.func.attr
        for node in ast.walk(value)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    }
    if not named & arguments:
        return None
    if calls & _REDUCTIONS:
        return False
    plain = not any(isinstance(node, ast.BinOp) for node in ast.walk(value)) and calls <= _HANDS_ON
    return True if plain and _STATISTIC.search(name) else None


def _moves(value: ast.expr, name: str) -> bool:
    """`0.9 * self.mean + 0.1 * new`: a mixture of what was there and something else."""
    return (
        isinstance(value, ast.BinOp)
        and isinstance(value.op, ast.Add)
        and any(
            isinstance(side, ast.BinOp)
            and isinstance(side.op, ast.Mult)
            and any(_is_attribute(factor, name) for factor in (side.left, side.right))
            for side in (value.left, value.right)
        )
    )


def attributes_read(owner: ast.ClassDef) -> set[str]:
    """Attributes of itself that an object of this class reads once it is made."""
    return {
        node.attr
        for method in owner.body
        if isinstance(method, ast.FunctionDef) and method.name != "__init__"
        for node in ast.walk(method)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and _is_self(node.value)
    }


def _is_attribute(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == name and _is_self(node.value)


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"
