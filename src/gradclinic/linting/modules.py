"""Where the modules are that a file imports: only those of its own project that train something are read."""

from __future__ import annotations

import ast
import os
import re
from functools import lru_cache

from gradclinic.source_text import UnreadableSource, read_source
from gradclinic.static import Find, Module, project_files, words
from gradclinic.static.legacy import parse
from gradclinic.static.trees import tree_of

MOST_PARENTS = 4
"""How far above a file the directory may lie that its imports start from."""
MOST_HOPS = 2
"""From a package to the module that it takes a name from."""
ROOT_MARKS = (".git", "pyproject.toml", "setup.py")
LARGEST = 80_000
_ACTING = (".backward(", "zero_grad(", ".step(", "clip_grad", "unscale_(", ".eval()", ".grad =", ".grad.zero")
_BUILDING = ("torch.optim", "import optim", "lr_scheduler")
TELLING = (*_ACTING, *_BUILDING)
"""Without any of these words a module has nothing that an order of events could be judged by."""
_MEASURING = re.compile(r"def (?:valid|val|eval|test)\w*\(\w*(?:model|net)\b")
"""A function that measures a model, which has none of them where it leaves the mode as it is."""


def look_anew() -> None:
    """Forget where modules were found: one process may lint again after files came and went."""
    _file.cache_clear()
    _starts.cache_clear()
    project_files.look_anew()


def finder(path: str) -> Find | None:
    """How to find what the file at `path` imports; None for what is no file of a project."""
    if not os.path.isfile(path) or "site-packages" in path:
        return None
    directory = os.path.dirname(path)

    def find(name: str, level: int) -> Module | None:
        file = _file(directory, name, level) or _passed_on(directory, name, level)
        if file is None or file == os.path.normpath(path):
            return None
        return _module(file, *project_files.version_of(file))

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


def _passed_on(directory: str, name: str, level: int, hops: int = MOST_HOPS) -> str | None:
    """The module that a package takes a name from: `from .tests import evaluate` in its `__init__.py`."""
    parent, _, last = name.rpartition(".")
    package = _file(directory, parent, level) if parent or level else None
    if package is None or os.path.basename(package) != "__init__.py" or not hops:
        return None
    home = os.path.dirname(package)
    for module, above in _sources(package, *project_files.version_of(package)).get(last, ()):
        found = _file(home, module, above) if module else None
        if found is not None and os.path.basename(found) == "__init__.py":
            return _passed_on(home, f"{module}.{last}", above, hops - 1)
        if found is not None:
            return found
    return None


@lru_cache(maxsize=512)
def _sources(package: str, changed: int, size: int) -> dict[str, list[tuple[str, int]]]:
    """From where a package takes the names that it passes on under the same name."""
    found: dict[str, list[tuple[str, int]]] = {}
    try:
        text = read_source(package).text if size <= LARGEST else ""
        for node in parse(text, package).body if "import" in text else ():
            for alias in node.names if isinstance(node, ast.ImportFrom) else ():
                if alias.asname in (None, alias.name):
                    assert isinstance(node, ast.ImportFrom)
                    found.setdefault(alias.name, []).append((node.module or "", node.level))
    except (UnreadableSource, SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    return found


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


@lru_cache(maxsize=32)
def _module(file: str, changed: int, size: int) -> Module | None:
    """Read once for all files that import it, as long as it does not change."""
    if size > LARGEST:
        return None
    try:
        text = read_source(file).text
        if not any(word in text for word in TELLING) and _MEASURING.search(text) is None:
            return None
        return Module(file, tree_of(text, file), words.speaks_of_losses(text))
    except (UnreadableSource, SyntaxError, ValueError, RecursionError, MemoryError):
        return None
