"""The functions of a file, and the module around them, each with what is written in it."""

from __future__ import annotations

import ast
from dataclasses import field
from functools import lru_cache
from typing import Any, TypeVar

from gradclinic.facts import Location
from gradclinic.frozen import record
from gradclinic.static import words
from gradclinic.static.syntax import children, names_in, nodes_in

_LOOPS = frozenset({ast.For, ast.AsyncFor, ast.While})
_LEAVES = frozenset({ast.Name, ast.Constant})
_FUNCTIONS = frozenset({ast.FunctionDef, ast.AsyncFunctionDef})
_WITH_STATEMENTS = (ast.stmt, ast.ExceptHandler, ast.match_case)
Node = TypeVar("Node", bound=ast.AST)


@record
class Scope:
    """One function or the module, without the functions inside it."""

    qualname: str
    node: ast.AST
    nodes: list[ast.AST] = field(default_factory=list)
    """All of its nodes but plain names and constants, in the order they are written."""
    looped: set[ast.AST] = field(default_factory=set)
    """Calls inside a loop of it."""
    kinds: dict[type[ast.AST], list[Any]] = field(default_factory=dict)
    """The nodes by what they are, once that has been asked: every reader asks for a few kinds only."""

    def of(self, kind: type[Node]) -> list[Node]:
        if not self.kinds:
            for node in self.nodes:
                self.kinds.setdefault(type(node), []).append(node)
        return self.kinds.get(kind, [])

    def calls(self) -> list[ast.Call]:
        return self.of(ast.Call)

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
        elif isinstance(node, _WITH_STATEMENTS):
            scope.nodes.append(node)
            within = f"{prefix}{node.name}." if isinstance(node, ast.ClassDef) else prefix
            _collect(node, scope, waiting, within, looped=looped or kind in _LOOPS)
        else:
            found = _expression(node)
            scope.nodes += found
            if looped:
                scope.looped.update(part for part in found if type(part) is ast.Call)


def _expression(root: ast.AST) -> list[ast.AST]:
    """What has no statements in it: the same, without a call for each of its parts."""
    found: list[ast.AST] = []
    stack = [root]
    while stack:
        node = stack.pop()
        if type(node) not in _LEAVES:
            found.append(node)
            parts = children(node)
            parts.reverse()
            stack += parts
    return found


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
