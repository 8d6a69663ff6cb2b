"""Where the modules are that a file imports: only those of its own project that train something are read."""

from __future__ import annotations

import os
from functools import lru_cache

from gradclinic.source_text import UnreadableSource, read_source
from gradclinic.static import Find, Module, words
from gradclinic.static.legacy import parse

MOST_PARENTS = 4
"""How far above a file the directory may lie that its imports start from."""
ROOT_MARKS = (".git", "pyproject.toml", "setup.py")
LARGEST = 80_000
TELLING = (".backward(", "zero_grad(", ".step(", "clip_grad", "unscale_(", ".eval()", ".grad =", ".grad.zero")
"""Without any of these words a module has nothing that an order of events could be judged by."""


def finder(path: str) -> Find | None:
    """How to find what the file at `path` imports; None for what is no file of a project."""
    if not os.path.isfile(path) or "site-packages" in path:
        return None
    directory = os.path.dirname(path)

    def find(name: str, level: int) -> Module | None:
        file = _file(directory, name, level)
        if file is None or file == os.path.normpath(path):
            return None
        version = os.stat(file)
        return _module(file, version.st_mtime_ns, version.st_size)

    return find


@lru_cache(maxsize=4096)
def _file(directory: str, name: str, level: int) -> str | None:
    above = [os.path.join(directory, *([".."] * (level - 1)))] if level else _starts(directory)
    for start in above:
        if not _holds(start, name.partition(".")[0]):
            continue
        base = os.path.normpath(os.path.join(start, *name.split(".")))
        for file in (f"{base}.py", os.path.join(base, "__init__.py")):
            if os.path.isfile(file):
                return file
    return None


def _holds(directory: str, name: str) -> bool:
    """Whether a module of that name may lie there, or a package."""
    here = directory or os.curdir
    try:
        version = os.stat(here)
        return not _entries(here, version.st_ino, version.st_mtime_ns).isdisjoint((name, f"{name}.py"))
    except OSError:
        return False


@lru_cache(maxsize=512)
def _entries(directory: str, inode: int, changed: int) -> frozenset[str]:
    """Most of what a file imports is of no project: to list a directory once saves asking for each."""
    return frozenset(os.listdir(directory))


@lru_cache(maxsize=512)
def _starts(directory: str) -> tuple[str, ...]:
    """The directory of the file and those above it, up to the root of the project."""
    starts = [directory]
    while len(starts) <= MOST_PARENTS:
        if any(os.path.exists(os.path.join(starts[-1], mark)) for mark in ROOT_MARKS):
            break
        starts.append(os.path.join(starts[-1], ".."))
    return tuple(starts)


@lru_cache(maxsize=256)
def _module(file: str, changed: int, size: int) -> Module | None:
    """Read once for all files that import it, as long as it does not change."""
    if size > LARGEST:
        return None
    try:
        text = read_source(file).text
        if not any(word in text for word in TELLING):
            return None
        return Module(file, parse(text, file), words.speaks_of_losses(text))
    except (UnreadableSource, SyntaxError, ValueError, RecursionError, MemoryError):
        return None
