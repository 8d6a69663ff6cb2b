"""What an optimizer is given: all the weights of a module, or some of them."""

from __future__ import annotations

import ast

from gradclinic.static.syntax import last_name

_TOGETHER = frozenset({"list", "tuple", "chain"})


def given_whole(given: ast.expr) -> bool:
    """`net.parameters()`, or those of several put together: no choice of names, no copies, no slices."""
    if isinstance(given, ast.Starred):
        return given_whole(given.value)
    if isinstance(given, (ast.List, ast.Tuple)):
        return bool(given.elts) and all(isinstance(e, ast.Starred) and given_whole(e) for e in given.elts)
    if isinstance(given, ast.BinOp) and isinstance(given.op, ast.Add):
        return given_whole(given.left) and given_whole(given.right)
    if not isinstance(given, ast.Call) or given.keywords:
        return False
    if last_name(given.func) in _TOGETHER:
        return bool(given.args) and all(map(given_whole, given.args))
    return isinstance(given.func, ast.Attribute) and given.func.attr == "parameters" and not given.args
