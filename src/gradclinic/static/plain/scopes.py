"""The functions of a file, and the module around them, each with what is written in it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import field
from functools import lru_cache

from gradclinic.facts import Location
from gradclinic.frozen import record
from gradclinic.static import words
from gradclinic.static.syntax import children, names_in, nodes_in

_LOOPS = frozenset({ast.For, ast.AsyncFor, ast.While})
_LEAVES = frozenset({ast.Name, ast.Constant})
_FUNCTIONS = frozenset({ast.FunctionDef, ast.AsyncFunctionDef})


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
        _collect(owner, scope, waiting, f"{qualname}." if qualname else "", looped=False)
        found.append(scope)
    return tuple(found)


def _collect(
    owner: ast.AST, scope: Scope, waiting: list[tuple[str, ast.AST]], prefix: str, *, looped: bool
) -> None:
    """What is written inside `owner`, with the functions there put among those that wait."""
    for node in children(owner):
        kind = type(node)
        if kind in _LEAVES:
            continue
        if kind in _FUNCTIONS:
            waiting.append((f"{prefix}{node.name}", node))  # type: ignore[attr-defined]
            continue
        scope.nodes.append(node)
        if looped and kind is ast.Call:
            scope.looped.add(node)
        within = f"{prefix}{node.name}." if kind is ast.ClassDef else prefix  # type: ignore[attr-defined]
        _collect(node, scope, waiting, within, looped=looped or kind in _LOOPS)


def over_epochs(loop: ast.For) -> bool:
    """By what it counts, or by how far: `for _ in range(args.epochs)`, `for state["epoch"] in ...`."""
    return any(words.EPOCH_NAME.search(name) for name in [*names_in(loop.target), *names_in(loop.iter)])


def bound_by(node: ast.AST) -> set[str]:
    """The names and attributes that a statement gives a value to, as they are written."""
    targets = node.targets if isinstance(node, ast.Assign) else []
    if isinstance(node, (ast.For, ast.NamedExpr, ast.AnnAssign)):
        targets = [node.target]
    return {
        ast.unparse(part)
        for target in targets
        for part in nodes_in(target)
        if isinstance(part, (ast.Name, ast.Attribute)) and isinstance(part.ctx, ast.Store)
    }
