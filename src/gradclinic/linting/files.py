"""Which files the given paths stand for."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from gradclinic.config import Config
from gradclinic.errors import UsageError

STDIN = "-"
NOTEBOOK = ".ipynb"
SUFFIXES = (".py", NOTEBOOK)
NEVER_ENTERED = frozenset({"node_modules", "site-packages", "__pycache__"})


def collect(paths: Iterable[str], config: Config) -> list[str]:
    """Files in the order given, those of a directory sorted. A file that is named is never left out."""
    found: dict[str, None] = {}
    for path in paths:
        if path == STDIN or os.path.isfile(path):
            found[path] = None
        elif os.path.isdir(path):
            found.update(dict.fromkeys(_below(path, config)))
        else:
            raise UsageError(f"{path}: there is no such file or directory")
    return list(found)


def _below(directory: str, config: Config) -> Iterator[str]:
    for parent, directories, files in os.walk(directory):
        directories[:] = sorted(
            name for name in directories if _entered(os.path.join(parent, name), name, config)
        )
        for name in sorted(files):
            path = os.path.normpath(os.path.join(parent, name))
            if name.endswith(SUFFIXES) and not config.excludes(path):
                yield path


def _entered(path: str, name: str, config: Config) -> bool:
    if name.startswith(".") or name in NEVER_ENTERED or os.path.exists(os.path.join(path, "pyvenv.cfg")):
        return False
    return not config.excludes(path)
