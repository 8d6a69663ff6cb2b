"""Modules of the same project that a file imports, where they can say what a model ends in."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

from gradclinic.static.flow.machine import Machine
from gradclinic.static.values import Frame, Lib, Value

MOST_LEVELS = 6
"""How far above the file the root of its project is looked for."""
MOST_HOPS = 3
"""From a package to the module that it takes a name from."""
LARGEST = 200_000
_ENDS_SOMEHOW = re.compile(r"softmax|sigmoid", re.I)
_DEFINING = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Assign)


def imported(machine: Machine, name: str, hops: int = MOST_HOPS, *, wanted: bool = False) -> Value | None:
    """What `package.module.thing` stands for, if it is defined in the project of the file being read.

    `wanted`: whatever the module is about, it is asked for something that only it can tell.
    """
    module, _, thing = name.rpartition(".")
    if not hops or not module.strip("."):
        return None
    path = _file_of(module, machine.path)
    frame = _frame_of(machine, path, wanted=wanted) if path is not None else None
    found = frame.vars.get(thing) if frame is not None else None
    if path is None or frame is None or (found is not None and not isinstance(found, Lib)):
        return found
    with _reading(machine, path):
        if found is None:
            return starred(machine, thing, hops - 1)
        return imported(machine, found.name, hops - 1, wanted=wanted)


def starred(machine: Machine, name: str, hops: int = MOST_HOPS) -> Value | None:
    """What a name stands for that the running file takes from a module it imports everything of."""
    for module in reversed(machine.stars.get(machine.path, ()) if hops else ()):
        path = _file_of(module, machine.path)
        frame = _frame_of(machine, path, wanted=True) if path is not None else None
        if path is None or frame is None:
            continue
        found = frame.vars.get(name)
        with _reading(machine, path):
            if isinstance(found, Lib):
                return imported(machine, found.name, hops - 1) or found
            found = found or starred(machine, name, hops - 1)
        if found is not None:
            return found
    return None


@contextmanager
def _reading(machine: Machine, path: str) -> Iterator[None]:
    """Names are looked up as the module at `path` would."""
    before, machine.path = machine.path, path
    try:
        yield
    finally:
        machine.path = before


def _frame_of(machine: Machine, path: str, *, wanted: bool) -> Frame | None:
    """The names a module defines; read once for each file that asks."""
    if machine.modules.get(path) is not None or (path in machine.modules and not wanted):
        return machine.modules[path]
    machine.modules[path] = None
    version = os.stat(path)
    tree = _parsed(path, version.st_mtime_ns, version.st_size, wanted)
    if tree is None:
        return None
    frame = Frame("", path=path)
    outer, home = machine.frame, machine.path
    branch, machine.branch = machine.branch, ()
    machine.frame, machine.path = frame, path
    try:
        machine.execute(machine, [node for node in tree.body if isinstance(node, _DEFINING)])
    finally:
        machine.frame, machine.path, machine.branch = outer, home, branch
    machine.modules[path] = frame
    return frame


@lru_cache(maxsize=256)
def _parsed(path: str, changed: int, size: int, wanted: bool) -> ast.Module | None:
    """Read once for all files that import it, as long as it does not change."""
    if size > LARGEST:
        return None
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        if not wanted and os.path.basename(path) != "__init__.py" and not _ENDS_SOMEHOW.search(text):
            return None
        return ast.parse(text)
    except (OSError, SyntaxError, ValueError, RecursionError):
        return None


@lru_cache(maxsize=4096)
def _file_of(module: str, path: str) -> str | None:
    """The file of `module` as imported by the file at `path`."""
    folder = os.path.dirname(path)
    names = module.lstrip(".")
    level = len(module) - len(names)
    if level:
        for _ in range(level - 1):
            folder = os.path.dirname(folder)
        return _module_in(folder, names)
    for _ in range(MOST_LEVELS):
        found = _module_in(folder, names)
        if found is not None or not folder or folder == os.path.dirname(folder):
            return found
        folder = os.path.dirname(folder)
    return None


def _module_in(folder: str, names: str) -> str | None:
    base = os.path.join(folder, *names.split("."))
    for candidate in (f"{base}.py", os.path.join(base, "__init__.py")):
        if os.path.isfile(candidate):
            return candidate
    return None
