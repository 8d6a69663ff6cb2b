"""What an import statement binds, and which modules of the project a file imports from."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from gradclinic.static.values import Module, Value, library

Find = Callable[[str, int], Module | None]
"""The module of a dotted name and a number of leading dots, if it is worth following."""
MOST_FOLLOWED = 8


def imported(text: str, find: Find | None) -> dict[str, Module]:
    """The modules a file imports from, by the name that all names taken from them begin with, or by the one
    name that a package passes on from them."""
    found: dict[str, Module] = {}
    followed: set[str] = set()
    for spelled, name, level in mentioned(text) if find else ():
        module = find(name, level) if find else None
        if module is not None and len(followed | {module.path}) <= MOST_FOLLOWED:
            found[spelled] = module
            followed.add(module.path)
    return found


def mentioned(text: str) -> Iterator[tuple[str, str, int]]:
    """What a file may import from: as it is spelled there, and as a name and a number of leading dots."""
    for node in _statements(text):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, alias.name, 0
        elif isinstance(node, ast.ImportFrom):
            if node.module:
                yield "." * node.level + node.module, node.module, node.level
            for alias in node.names:
                inner = f"{node.module}.{alias.name}" if node.module else alias.name
                yield "." * node.level + inner, inner, node.level


def _statements(text: str) -> list[ast.stmt]:
    """The imports of the module itself. Parsed alone: most files have nothing else that must be read."""
    lines = text.splitlines()
    found: list[str] = []
    for number, line in enumerate(lines):
        if not line.startswith(("import ", "from ")):
            continue
        for more in lines[number + 1 :] if "(" in line or line.endswith("\\") else ():
            if line.count("(") <= line.count(")") and not line.endswith("\\"):
                break
            line += f"\n{more}"
        found.append(line)
    try:
        return ast.parse("\n".join(found)).body
    except (SyntaxError, ValueError):
        return [statement for line in found for statement in _parsed(line)]


def _parsed(line: str) -> list[ast.stmt]:
    """Nothing, if it only looks like an import."""
    try:
        return ast.parse(line).body
    except (SyntaxError, ValueError):
        return []


def bindings(node: ast.Import | ast.ImportFrom) -> dict[str, Value]:
    if isinstance(node, ast.Import):
        return {
            alias.asname or alias.name.split(".", 1)[0]: library(
                alias.name if alias.asname else alias.name.split(".", 1)[0]
            )
            for alias in node.names
        }
    inside = "." * node.level + (f"{node.module}." if node.module else "")
    return {
        alias.asname or alias.name: library(inside + alias.name) for alias in node.names if alias.name != "*"
    }
