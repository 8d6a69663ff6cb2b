"""The functions of a file, and the module around them, each with what is written in it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from gradclinic.facts import Location


@dataclass(slots=True)
class Scope:
    """One function or the module, without the functions inside it."""

    qualname: str
    node: ast.AST
    nodes: list[ast.AST] = field(default_factory=list)
    """All of its nodes, in the order they are written."""
    looped: set[ast.AST] = field(default_factory=set)
    """Calls inside a loop of it."""

    def calls(self) -> Iterator[ast.Call]:
        return (node for node in self.nodes if isinstance(node, ast.Call))

    def in_loop(self, call: ast.Call) -> bool:
        return call in self.looped

    def at(self, node: ast.AST, path: str) -> Location:
        return Location(path, node.lineno, node.col_offset, self.qualname)  # type: ignore[attr-defined]


def scopes(tree: ast.Module) -> Iterator[Scope]:
    """The module first, then every function and method in the order of their definitions."""
    waiting: list[tuple[str, ast.AST]] = [("", tree)]
    while waiting:
        qualname, owner = waiting.pop(0)
        scope = Scope(qualname, owner)
        prefix = f"{qualname}." if qualname else ""
        for child in ast.iter_child_nodes(owner):
            _collect(child, scope, waiting, prefix, looped=False)
        yield scope


def _collect(
    node: ast.AST, scope: Scope, waiting: list[tuple[str, ast.AST]], prefix: str, *, looped: bool
) -> None:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        waiting.append((f"{prefix}{node.name}", node))
        return
    scope.nodes.append(node)
    if looped and isinstance(node, ast.Call):
        scope.looped.add(node)
    inside = prefix + f"{node.name}." if isinstance(node, ast.ClassDef) else prefix
    looped = looped or isinstance(node, (ast.For, ast.AsyncFor, ast.While))
    for child in ast.iter_child_nodes(node):
        _collect(child, scope, waiting, inside, looped=looped)
