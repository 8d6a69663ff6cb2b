"""What an import statement binds."""

from __future__ import annotations

import ast

from gradclinic.static.values import Value, library


def bindings(node: ast.Import | ast.ImportFrom) -> dict[str, Value]:
    if isinstance(node, ast.Import):
        return {
            alias.asname or alias.name.split(".", 1)[0]: library(
                alias.name if alias.asname else alias.name.split(".", 1)[0]
            )
            for alias in node.names
        }
    module = "." * node.level + (node.module or "")
    found: dict[str, Value] = {}
    for alias in node.names:
        if alias.name != "*":
            found[alias.asname or alias.name] = library(f"{module}.{alias.name}")
    return found
