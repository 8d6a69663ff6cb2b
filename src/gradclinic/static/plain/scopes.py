"""The functions of a file, and the module around them, each with what is written in it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import field
from functools import lru_cache

from gradclinic.facts import Location
from gradclinic.frozen import record
from gradclinic.static.syntax import children


@record
class Scope:
    """One function or the module, without the functions inside it."""

    qualname: str
    node: ast.AST
    nodes: list[ast.AST] = field(default_factory=list)
    """All of its nodes but plain names and constants, in the order they are written."""
    looped: set[ast.AST] = field(default_factory=set)
    """Calls inside a loop of it."""

    def calls(self) -> Iterator[ast.Call]:
        return (node for node in self.nodes if isinstance(node, ast.Call))

    def in_loop(self, call: ast.Call) -> bool:
        return call in self.looped

    def at(self, node: ast.AST, path: str) -> Location:
        return Location(path, node.lineno, node.col_offset, self.qualname)  # type: ignore[attr-defined]


@lru_cache(maxsize=1)
def scopes(tree: ast.Module) -> tuple[Scope, ...]:
    """The module first, then every function and method in the order of their definitions.

    Remembered, for the readers of one file ask for it one after the other.
    """
    found: list[Scope] = []
    waiting: list[tuple[str, ast.AST]] = [("", tree)]
    for qualname, owner in waiting:  # which grows meanwhile
        scope = Scope(qualname, owner)
        prefix = f"{qualname}." if qualname else ""
        for child in children(owner):
            _collect(child, scope, waiting, prefix, looped=False)
        found.append(scope)
    return tuple(found)


def _collect(
    node: ast.AST, scope: Scope, waiting: list[tuple[str, ast.AST]], prefix: str, *, looped: bool
) -> None:
    if isinstance(node, (ast.Name, ast.Constant)):
        return
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        waiting.append((f"{prefix}{node.name}", node))
        return
    scope.nodes.append(node)
    if isinstance(node, ast.Call):
        if looped:
            scope.looped.add(node)
    elif isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
        looped = True
    elif isinstance(node, ast.ClassDef):
        prefix += f"{node.name}."
    for child in children(node):
        _collect(child, scope, waiting, prefix, looped=looped)
