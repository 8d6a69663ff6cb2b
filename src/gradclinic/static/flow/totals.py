"""Names that something is added to time and again."""

from __future__ import annotations

import ast

from gradclinic.static.flow.machine import Machine
from gradclinic.static.syntax import last_name, names_in, nodes_in

_JOINS = frozenset({"cat", "concat", "concatenate", "hstack", "vstack"})


def adds_to_itself(target: ast.expr, value: ast.expr) -> str:
    """Which side of `total = total + loss`, or of `mean = 0.1 * loss + 0.9 * mean`, is what was there."""
    if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Add):
        return ""
    if not isinstance(target, (ast.Name, ast.Attribute)):
        return ""
    return next((side for side in ("left", "right") if _is_share(getattr(value, side), target)), "")


def grows_at_its_end(target: ast.expr, value: ast.expr) -> bool:
    """`outputs = torch.cat([outputs, output])`"""
    if not isinstance(value, ast.Call) or last_name(value.func) not in _JOINS or not value.args:
        return False
    parts = value.args[0]
    return isinstance(parts, (ast.List, ast.Tuple)) and any(_is_same(part, target) for part in parts.elts)


def _is_share(node: ast.expr, of: ast.expr) -> bool:
    """Whether it is what the target holds, or that times something."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return _is_same(node.left, of) or _is_same(node.right, of)
    return _is_same(node, of)


def _is_same(one: ast.expr, other: ast.expr) -> bool:
    if isinstance(one, ast.Name) and isinstance(other, ast.Name):
        return one.id == other.id
    if isinstance(one, ast.Attribute) and isinstance(other, ast.Attribute):
        return one.attr == other.attr and _is_same(one.value, other.value)
    return False


def restarted(machine: Machine, node: ast.stmt, target: ast.expr) -> bool:
    """Whether the loop that adds to it lets it start over."""
    if not machine.loops:
        return False
    loop = machine.loops[-1]
    if (loop, node) not in machine.restarts:
        function = machine.active[-1] if machine.active else None
        local = isinstance(target, ast.Name) and _is_its_own(function, loop, target.id)
        machine.restarts[loop, node] = local or _starts_over(loop, target)
    return machine.restarts[loop, node]


def _is_its_own(function: ast.AST | None, loop: ast.AST, name: str) -> bool:
    """Whether the loop is around the function, which has made what it adds to by itself: anew every time."""
    if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return False
    spec = function.args
    given = {argument.arg for argument in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)}
    parts = nodes_in(function)
    shared = any(isinstance(part, (ast.Global, ast.Nonlocal)) and name in part.names for part in parts)
    return name not in given and not shared and loop not in parts


def _starts_over(loop: ast.AST, total: ast.expr) -> bool:
    """`running = 0` within the loop that adds to it, every k-th time say."""
    name = ast.unparse(total)
    if isinstance(total, ast.Attribute) and any(
        isinstance(node, ast.Call) and last_name(node.func).startswith("reset") for node in nodes_in(loop)
    ):
        return True
    return any(
        isinstance(node, ast.Assign)
        and any(ast.unparse(target) == name for target in _each(node.targets))
        and isinstance(node.value, (ast.Constant, ast.Call, ast.Tuple))
        and last_name(total) not in names_in(node.value)
        for node in nodes_in(loop)
    )


def _each(targets: list[ast.expr]) -> list[ast.expr]:
    """`total, count = 0, 0` has two."""
    return [one for target in targets for one in (target.elts if isinstance(target, ast.Tuple) else [target])]
