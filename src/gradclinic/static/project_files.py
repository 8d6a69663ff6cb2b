"""Where the modules are that a file imports from its own project, and what stands in them."""

from __future__ import annotations

import ast
import os
import re
from functools import lru_cache

from gradclinic.static.imports import mentioned
from gradclinic.static.trees import tree_of

MOST_LEVELS = 6
"""How far above the file the root of its project is looked for."""
MOST_HOPS = 3
"""From a package to the module that it takes a name from."""
LARGEST = 200_000
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
    if module.partition(".")[0] in _FRAMEWORKS:
        return None
    folder = os.path.dirname(path)
    names = module.lstrip(".")
    level = len(module) - len(names)
    if level:
        for _ in range(level - 1):
            folder = os.path.dirname(folder)
        return _module_in(folder, names)
    for _ in range(MOST_LEVELS):
        found = _module_in(folder, names) or _module_in(os.path.join(folder, "src"), names)
        if found is not None or not folder or folder == os.path.dirname(folder):
            return found
        folder = os.path.dirname(folder)
    return None


def look_anew() -> None:
    """Forget where modules were found, or were not: one process may lint again after files came and went."""
    file_of.cache_clear()


def _module_in(folder: str, names: str) -> str | None:
    base = os.path.join(folder, *names.split("."))
    for candidate in (f"{base}.py", os.path.join(base, "__init__.py")):
        if os.path.isfile(candidate):
            return candidate
    return None
