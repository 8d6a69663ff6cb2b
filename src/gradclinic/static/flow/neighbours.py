"""Modules of the same project that a file imports, where they can say what a model ends in."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from gradclinic.static.flow.machine import Machine
from gradclinic.static.project_files import MOST_HOPS, file_of, parsed, version_of
from gradclinic.static.values import Frame, Lib, Value

ENDS_SOMEHOW = re.compile(r"softmax|sigmoid", re.I)
"""What a module speaks of that can say what a model ends in."""
ENDS_OR_JUDGES = re.compile(rf"{ENDS_SOMEHOW.pattern}|cross_entropy|CrossEntropy|nll_loss|NLLLoss|BCE", re.I)
"""The same for one that a model is handed to: it may have the loss."""
_DEFINING = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Assign)


def imported(
    machine: Machine, name: str, *, about: re.Pattern[str] | None = ENDS_SOMEHOW
) -> Value | None:
    """What `package.module.thing` stands for, if it is defined in the project of the file being read.

    Modules that do not speak of what it is `about` are not read; all are where that is None.
    """
    return _once(machine, (machine.path, name, about), lambda: _imported(machine, name, about))


def starred(machine: Machine, name: str) -> Value | None:
    """What a name stands for that the running file takes from a module it imports everything of."""
    if machine.path not in machine.stars:
        return None
    return _once(machine, (machine.path, name), lambda: _starred(machine, name))


def _once(machine: Machine, asked: tuple[object, ...], look: Callable[[], Value | None]) -> Value | None:
    """A name stands for what it did when it was imported, and is asked for each time that it is used."""
    if asked in machine.imports:
        return machine.imports[asked]
    found = look()
    if not machine.reading:  # or a name that is not there yet may come
        machine.imports[asked] = found
    return found


def _imported(
    machine: Machine, name: str, about: re.Pattern[str] | None, hops: int = MOST_HOPS
) -> Value | None:
    module, _, thing = name.rpartition(".")
    if not hops or not module.strip(".") or "site-packages" in machine.path:
        return None
    path = file_of(module, machine.path)
    frame = _frame_of(machine, path, about) if path is not None else None
    found = frame.vars.get(thing) if frame is not None else None
    if path is None or frame is None or (found is not None and not isinstance(found, Lib)):
        return found
    with _reading(machine, path):
        if found is None:
            return _starred(machine, thing, hops - 1)
        return _imported(machine, found.name, about, hops - 1)


def _starred(machine: Machine, name: str, hops: int = MOST_HOPS) -> Value | None:
    for module in reversed(machine.stars.get(machine.path, ()) if hops else ()):
        path = file_of(module, machine.path)
        frame = _frame_of(machine, path, None) if path is not None else None
        if path is None or frame is None:
            continue
        found = frame.vars.get(name)
        with _reading(machine, path):
            if isinstance(found, Lib):
                return _imported(machine, found.name, ENDS_SOMEHOW, hops - 1) or found
            found = found or _starred(machine, name, hops - 1)
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


def _frame_of(machine: Machine, path: str, about: re.Pattern[str] | None) -> Frame | None:
    """The names a module defines; read once for each file that asks."""
    if path in machine.modules:
        return machine.modules[path]
    about = None if machine.reads_all else about
    if (path, about) in machine.untold:
        return None
    tree = parsed(path, *version_of(path), about)
    if tree is None:
        machine.untold.add((path, about))
        return None
    machine.modules[path] = None  # while it is being read: modules may import each other
    frame = Frame("", path=path)
    outer, home = machine.frame, machine.path
    branch, machine.branch = machine.branch, ()
    machine.frame, machine.path = frame, path
    machine.reading += 1
    try:
        machine.execute(machine, [node for node in tree.body if isinstance(node, _DEFINING)])
    finally:
        machine.reading -= 1
        machine.frame, machine.path, machine.branch = outer, home, branch
    machine.modules[path] = frame
    return frame
