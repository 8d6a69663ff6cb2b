"""Where the modules are that a file imports from its own project, and what stands in them."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Collection
from functools import lru_cache

from gradclinic.static.imports import mentioned
from gradclinic.static.trees import tree_of

MOST_LEVELS = 6
"""How far above the file the root of its project is looked for."""
MOST_HOPS = 3
"""From a package to the module that it takes a name from."""
ROOT_MARKS = frozenset({".git", "pyproject.toml", "setup.py"})
LARGEST = 200_000
_OF_SOURCES = ("src", "lib")
"""Folders that many a project puts on the path."""
_FRAMEWORKS = frozenset({"accelerate", "deepspeed", "lightning_fabric", "pytorch_lightning"})
"""What they do is known, and is not read out of their source where that lies beside the examples: names that
no project has for a folder of its own."""


def parsed(path: str, changed: int, size: int, telling: re.Pattern[str] | None = None) -> ast.Module | None:
    """None as well for a module without anything `telling`; a package may pass on what others define."""
    if size > LARGEST or (telling and not _tells(path, changed, size, telling)):
        return None
    text = _read(path, changed, size)
    if size and not text:
        return None  # for it cannot be read
    try:
        return tree_of(text, path)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


@lru_cache(maxsize=4096)
def _tells(path: str, changed: int, size: int, telling: re.Pattern[str]) -> bool:
    text = _read(path, changed, size)
    package = os.path.basename(path) == "__init__.py"
    return package or telling.search(text) is not None or _takes(text, path, telling)


def _takes(text: str, path: str, telling: re.Pattern[str]) -> bool:
    """Whether it defines models, and what it imports for them from its project has anything telling."""
    if "super(" not in text or "nn." not in text:
        return False
    files = {file_of(spelled, path) for spelled, _, _ in mentioned(text)} - {path, None}
    return any(telling.search(text_of(file)) for file in files if file is not None)


def version_of(file: str) -> tuple[int, int]:
    """When it was changed, and its size: nothing for a link that leads nowhere and for what is gone since."""
    try:
        version = os.stat(file)
    except OSError:
        return 0, 0
    return version.st_mtime_ns, version.st_size


def text_of(file: str) -> str:
    """Empty where it cannot be read."""
    changed, size = version_of(file)
    return _read(file, changed, size) if size <= LARGEST else ""


@lru_cache(maxsize=512)
def _read(file: str, changed: int, size: int) -> str:
    try:
        with open(file, encoding="utf-8") as source:
            return source.read()
    except (OSError, ValueError):
        return ""


@lru_cache(maxsize=4096)
def file_of(module: str, path: str) -> str | None:
    """The file of `module` as imported by the file at `path`."""
    first = module.partition(".")[0]
    if first in _FRAMEWORKS:
        return None
    names = module.lstrip(".")
    level = len(module) - len(names)
    folder = os.path.dirname(path)
    if level:
        for _ in range(level - 1):
            folder = above(folder)
        return _module_in(folder, names)
    for start in _starts(folder):
        held = entries(start)
        if first in held or f"{first}.py" in held:
            found = _module_in(start, names)
            if found is not None:
                return found
    return None


@lru_cache(maxsize=512)
def _starts(folder: str) -> tuple[str, ...]:
    """Where imports may start from: its own folder and those above it, up to the root of the project."""
    starts: list[str] = []
    for _ in range(MOST_LEVELS):
        held = entries(folder)
        starts += (folder, *(os.path.join(folder, inner) for inner in _OF_SOURCES if inner in held))
        if is_root(folder) or above(folder) == folder:
            break
        folder = above(folder)
    return tuple(starts)


def is_root(folder: str) -> bool:
    """Whether a project begins here."""
    return not ROOT_MARKS.isdisjoint(entries(folder))


def above(folder: str) -> str:
    """The folder that holds it, in one spelling for all: `a/b`, `a`, nothing, `..`, `../..`."""
    if folder and os.path.basename(folder) != os.pardir:
        return os.path.dirname(folder)
    return os.path.join(folder, os.pardir)


def entries(folder: str) -> Collection[str]:
    """What lies in it, in order; nothing where it cannot be looked into.

    Most of what a file imports is of no project: to list a folder once saves asking for each.
    """
    here = folder or os.curdir
    try:
        return _listed(here, os.stat(here).st_mtime_ns)
    except OSError:
        return ()


@lru_cache(maxsize=512)
def _listed(folder: str, changed: int) -> Collection[str]:
    return dict.fromkeys(sorted(os.listdir(folder)))


def look_anew() -> None:
    """Forget where modules were found, or were not: one process may lint again after files came and went."""
    file_of.cache_clear()
    _starts.cache_clear()


def _module_in(folder: str, names: str) -> str | None:
    base = os.path.join(folder, *names.split("."))
    for candidate in (f"{base}.py", os.path.join(base, "__init__.py")):
        if os.path.isfile(candidate):
            return plain(candidate)
    return None


def plain(path: str) -> str:
    """`../here/train.py` is `train.py` for who works there."""
    spelled = os.path.relpath(path) if path.startswith(os.pardir) else path
    return "" if spelled == os.curdir else spelled
