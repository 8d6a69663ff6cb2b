"""What the files of a project speak of, all of them asked for a word or two."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import lru_cache

from gradclinic.static.project_files import above, is_root

MOST_LEVELS = 8
"""How far above a file the root of its project is looked for."""
MOST_FILES = 1500
_NOT_OF_IT = frozenset({"site-packages", "node_modules", "venv", "env", "build", "dist", "__pycache__"})


def said(file: str, words: re.Pattern[bytes]) -> bool:
    """Whether some file of its project says so, or nobody knows where that ends."""
    path = os.path.abspath(file)
    return os.path.isfile(path) and _spoken_of(path, words)


def never_said(file: str, words: re.Pattern[bytes]) -> bool:
    """Whether no file of a project says so; where a project ends must be known."""
    path = os.path.abspath(file)
    return os.path.isfile(path) and not _spoken_of(path, words)


def _spoken_of(path: str, words: re.Pattern[bytes]) -> bool:
    """Whether a file of the project says so, or nobody knows where it ends."""
    root = os.path.dirname(path)
    for _ in range(MOST_LEVELS):
        if is_root(root):
            return _searched(root or os.curdir, words)
        root = above(root)
    return True


def look_anew() -> None:
    """Forget what was searched: files may say something else since."""
    _searched.cache_clear()


@lru_cache(maxsize=64)
def _searched(root: str, words: re.Pattern[bytes]) -> bool:
    try:
        for number, file in enumerate(_sources(root)):
            with open(file, "rb") as source:
                if number == MOST_FILES or words.search(source.read()):
                    return True
    except OSError:
        return True
    return False


def _sources(root: str) -> Iterator[str]:
    for folder, inner, names in os.walk(root):
        inner[:] = [name for name in inner if name not in _NOT_OF_IT and not name.startswith(".")]
        yield from (os.path.join(folder, name) for name in names if name.endswith(".py"))
