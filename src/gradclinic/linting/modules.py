"""Where the modules are that a file imports: only those of its own project that train something are read."""

from __future__ import annotations

import ast
import os
import re
from functools import lru_cache

from gradclinic.source_text import UnreadableSource, read_source
from gradclinic.static import Find, Module, project_files, project_words, words
from gradclinic.static.legacy import parse
from gradclinic.static.project_files import file_of, version_of
from gradclinic.static.trees import tree_of

MOST_HOPS = 2
"""From a package to the module that it takes a name from."""
LARGEST = 80_000
_ACTING = (".backward(", "zero_grad(", ".step(", "clip_grad", "unscale_(", ".eval()", ".grad =", ".grad.zero")
_BUILDING = ("torch.optim", "import optim", "lr_scheduler")
TELLING = (*_ACTING, *_BUILDING)
"""Without any of these words a module has nothing that an order of events could be judged by."""
_MEASURING = re.compile(r"def (?:valid|val|eval|test)\w*\(\w*(?:model|net)\b")
"""A function that measures a model, which has none of them where it leaves the mode as it is."""


def look_anew() -> None:
    """Forget where modules were found: one process may lint again after files came and went."""
    project_files.look_anew()
    project_words.look_anew()


def finder(path: str) -> Find | None:
    """How to find what the file at `path` imports; None for what is no file of a project."""
    if not os.path.isfile(path) or "site-packages" in path:
        return None

    def find(name: str, level: int) -> Module | None:
        spelled = "." * level + name
        file = file_of(spelled, path) or _passed_on(spelled, path)
        if file is None or file == os.path.normpath(path):
            return None
        return _module(file, *version_of(file))

    return find


def _passed_on(spelled: str, path: str, hops: int = MOST_HOPS) -> str | None:
    """The module that a package takes a name from: `from .tests import evaluate` in its `__init__.py`."""
    names = spelled.lstrip(".")
    parent, _, last = names.rpartition(".")
    parent = spelled[: len(spelled) - len(names)] + parent
    package = file_of(parent, path) if parent else None
    if package is None or os.path.basename(package) != "__init__.py" or not hops:
        return None
    for module in _sources(package, *version_of(package)).get(last, ()):
        found = file_of(module, package) if module.strip(".") else None
        if found is not None and os.path.basename(found) == "__init__.py":
            return _passed_on(f"{module}.{last}", package, hops - 1)
        if found is not None:
            return found
    return None


@lru_cache(maxsize=512)
def _sources(package: str, changed: int, size: int) -> dict[str, list[str]]:
    """From where a package takes the names that it passes on under the same name."""
    found: dict[str, list[str]] = {}
    try:
        text = read_source(package).text if size <= LARGEST else ""
        for node in parse(text, package).body if "import" in text else ():
            for alias in node.names if isinstance(node, ast.ImportFrom) else ():
                if alias.asname in (None, alias.name):
                    assert isinstance(node, ast.ImportFrom)
                    found.setdefault(alias.name, []).append("." * node.level + (node.module or ""))
    except (UnreadableSource, SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    return found


def is_worth_following(text: str) -> bool:
    """Whether a module has anything that the training of who imports it could be judged by."""
    return any(word in text for word in TELLING) or _MEASURING.search(text) is not None


@lru_cache(maxsize=32)
def _module(file: str, changed: int, size: int) -> Module | None:
    """Read once for all files that import it, as long as it does not change."""
    if size > LARGEST:
        return None
    try:
        text = read_source(file).text
        if not is_worth_following(text):
            return None
        return Module(file, tree_of(text, file), words.speaks_of_losses(text))
    except (UnreadableSource, SyntaxError, ValueError, RecursionError, MemoryError):
        return None
