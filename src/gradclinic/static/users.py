"""How other files use a class of this one: what they may do between two calls of its method.

A method that is one step of a training leaves it to them to call it again, and to clear before they do.
"""

from __future__ import annotations

import ast
import re

from gradclinic.static.callers import scripts_that_import, sources_around
from gradclinic.static.project_files import parsed, text_of, version_of
from gradclinic.static.syntax import children, last_name

_CLEARS = re.compile(r"zero_grad|\.grad\b|_zero_\(|set_to_none|register_step_\w+_hook")
_LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.Module)


def leave_gradients(path: str, cls: str, method: str, held: set[str]) -> bool:
    """Whether no user of the class in the file at `path` clears what the method leaves.

    Nor derives from the class, builds it anew for every call, or calls the method but once. By `held` it
    knows its optimizers.
    """
    users = [file for file in scripts_that_import(path) if _speaks_of(cls, text_of(file))]
    if any(_CLEARS.search(text_of(file)) for file in users):
        return False
    by_name = re.compile(rf"(?<!\bself)\.(?:{'|'.join(map(re.escape, sorted(held)))})\.zero_grad\b")
    if held and any(by_name.search(text_of(file)) for file in sources_around(path)):
        return False  # of one that was handed on
    trees = [parsed(file, *version_of(file)) for file in users]
    used = [_Uses(cls, method, tree) for tree in trees if tree is not None]
    if any(uses.derived for uses in used):
        return False
    called = [uses for uses in used if uses.calls]
    return not called or any(uses.calls_again() for uses in called)


def _speaks_of(name: str, text: str) -> bool:
    return name in text and re.search(rf"\b{re.escape(name)}\b", text) is not None


class _Uses:
    """Where a file builds the class and calls the method, each with the function and the loops around it."""

    def __init__(self, cls: str, method: str, tree: ast.Module) -> None:
        self._cls, self._method = cls, method
        self.builds: list[tuple[ast.AST, frozenset[ast.AST]]] = []
        self.calls: list[tuple[ast.AST, frozenset[ast.AST]]] = []
        self.derived = False
        self._collect(tree, tree, frozenset())

    def _collect(self, node: ast.AST, scope: ast.AST, loops: frozenset[ast.AST]) -> None:
        if isinstance(node, ast.ClassDef):
            self.derived |= self._cls in map(last_name, node.bases)
        elif isinstance(node, _SCOPES):
            scope, loops = node, frozenset()
        elif isinstance(node, _LOOPS):
            loops |= {node}
        elif isinstance(node, ast.Call):
            if last_name(node.func) == self._cls:
                self.builds.append((scope, loops))
            elif self._is_call(node.func):
                self.calls.append((scope, loops))
        for child in children(node):
            self._collect(child, scope, loops)

    def _is_call(self, func: ast.expr) -> bool:
        if not isinstance(func, ast.Attribute) or func.attr != self._method:
            return False
        return last_name(func.value) not in ("self", "super")

    def calls_again(self) -> bool:
        """Whether one object may get the call twice: a loop goes around the call and not around the object,
        or who builds it is not in sight."""
        for scope, loops in self.calls:
            built = [around for where, around in self.builds if where is scope]
            if not built or any(loops - around for around in built):
                return True
        return False
