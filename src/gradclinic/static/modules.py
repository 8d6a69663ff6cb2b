"""Other modules of the project that a file imports from, followed one level deep.

The names of such a module are bound as those of any library; only where one is called or derived from is
it looked up, and the function or class behind it is walked as if it stood in the file itself.
"""

from __future__ import annotations

import ast
import contextlib

from gradclinic.static import imports
from gradclinic.static.values import ClassDef, Frame, Func, Lib, Module, Value, library
from gradclinic.static.walk import BreakLoop, ContinueLoop, ReturnValue, Stop, Walk


def resolved(walk: Walk, value: Value) -> Value:
    """The function or class that a name of a followed module stands for; other values as they are."""
    if not walk.modules or not isinstance(value, Lib):
        return value
    origin, _, name = value.name.rpartition(".")
    module = walk.modules.get(origin) or walk.modules.get(value.name)
    found = _frame(walk, module).vars.get(name) if module is not None else None
    return found if isinstance(found, (Func, ClassDef)) else value


def bindings(walk: Walk, node: ast.Import | ast.ImportFrom) -> dict[str, Value]:
    """What an import binds. Imports of a followed module are not followed: its `.engine` is another."""
    bound = imports.bindings(node)
    if walk.modules and not walk.frame.module.path and isinstance(node, ast.ImportFrom):
        bound |= _all_of(walk, node)
    if walk.modules and walk.frame.module.path:
        for name, value in bound.items():
            if isinstance(value, Lib) and not walk.modules.keys().isdisjoint(_ways_to(value.name)):
                bound[name] = library(f"<{walk.frame.module.path}>{value.name}")
    return bound


def _ways_to(name: str) -> tuple[str, str]:
    """By what a module may be known that `name` is taken from."""
    return name, name.rpartition(".")[0]


def _all_of(walk: Walk, node: ast.ImportFrom) -> dict[str, Value]:
    """The functions and classes that `from module import *` brings."""
    spelled = "." * node.level + (node.module or "")
    module = walk.modules.get(spelled) if node.names[0].name == "*" else None
    return {
        part.name: library(f"{spelled}.{part.name}")
        for part in (module.tree.body if module is not None else ())
        if isinstance(part, (ast.FunctionDef, ast.ClassDef)) and not part.name.startswith("_")
    }


def define(walk: Walk, tree: ast.Module) -> None:
    """The names of a module, without what its top level does."""
    walk.recorder.muted += 1
    for statement in tree.body:
        if isinstance(statement, (ast.If, ast.For, ast.While, ast.With, ast.Expr)):
            continue
        with contextlib.suppress(ReturnValue, BreakLoop, ContinueLoop, Stop):
            walk.execute(walk, [statement])
    walk.recorder.muted -= 1


def _frame(walk: Walk, module: Module) -> Frame:
    frame = walk.opened.get(module.path)
    if frame is None:
        frame = walk.opened[module.path] = Frame("", path=module.path)
        outer, walk.frame = walk.frame, frame
        try:
            define(walk, module.tree)
        finally:
            walk.frame = outer
    return frame
