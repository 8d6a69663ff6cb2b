"""Files of the project that import a file: what its functions are given is seen there alone."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from functools import lru_cache

from gradclinic.static import words
from gradclinic.static.imports import mentioned
from gradclinic.static.project_files import above, entries, file_of, is_root, plain, text_of

MOST_CALLERS = 4
MOST_FOLDERS = 40
"""Side by side; where there are more, they are no project."""
MOST_FILES = 300
LEVELS_UP = 2
LEVELS_DOWN = 2
"""Imports that are followed from a script to its loss."""
_TRAINS = re.compile(r"loss|criterion|train|\.fit\(", re.I)
"""What a script speaks of that may give a model to a loss, or to one who does."""
_SCALES = re.compile(r"scaler\.scale\([^\n]*\)\.backward\(", re.I)


def callers_of(path: str, beside: Collection[str] = ()) -> list[str]:
    """The scripts that import the file at `path`, straight or by way of another, nearest first.

    Without those `beside` it that are read for themselves: they tell what they give.
    """
    return [file for file in scripts_that_import(path) if file not in beside][:MOST_CALLERS]


def trainers_of(path: str, beside: Collection[str]) -> list[str]:
    """Of those, such as may train what the file defines; nobody if one is read for itself and will tell."""
    found = [file for file in scripts_that_import(path) if _TRAINS.search(text_of(file))]
    if any(file in beside for file in found):
        return []
    found = sorted(found, key=lambda file: "backward(" not in text_of(file))[:MOST_CALLERS]
    return found if _reach_a_loss(found, path) else []


def _reach_a_loss(scripts: list[str], but: str) -> bool:
    """Whether one of them, or what they import, has a loss that minds what it is given; `but` one aside."""
    if any(words.speaks_of_losses(text_of(file)) for file in scripts):
        return True
    seen, level = {but, *scripts}, scripts
    for _ in range(LEVELS_DOWN):
        below: list[str] = []
        for file in level:
            for spelled in _spelled(text_of(file)):
                other = file_of(spelled, file)
                if other is None or other in seen:
                    continue
                if words.speaks_of_losses(text_of(other)):
                    return True
                seen.add(other)
                below.append(other)
        level = below
    return False


def called_with_a_scale(path: str) -> bool:
    """Whether one of those goes backward from a loss that a scaler has scaled."""
    return any(_SCALES.search(text_of(file)) for file in scripts_that_import(path))


def scripts_that_import(path: str) -> list[str]:
    """Straight or by way of another, nearest first; tests are none."""
    files = sources_around(path)
    found = [path]
    for imported in found:  # which grows meanwhile
        found += [file for file in files if file not in found and _imports(file, imported)]
        if len(found) > MOST_CALLERS * 2:
            break
    runs = [file for file in found[1:] if os.path.basename(file) != "__init__.py"]
    return [file for file in runs if not words.TEST_FILE.search(file)]


def sources_around(path: str) -> list[str]:
    """The files of its project as far as anyone would look; none where they are too many to be one."""
    if "site-packages" in path or not os.path.isfile(path):
        return []
    files = [file for folder in _folders(path) for file in _sources(folder)]
    return files if len(files) <= MOST_FILES else []


def _folders(path: str) -> Iterator[str]:
    """Its own and those above it within the project, each with those in it."""
    folder, below = os.path.dirname(path), ""
    for _ in range(LEVELS_UP + 1):
        inner = [plain(os.path.join(folder, name)) for name in entries(folder) if "." not in name]
        inner = [one for one in inner if one != below and os.path.isdir(one)]
        if len(inner) > MOST_FOLDERS:
            return
        yield folder
        yield from inner
        if above(folder) == folder or is_root(folder):
            return
        folder, below = above(folder), folder


def _sources(folder: str) -> list[str]:
    return [os.path.join(folder, name) for name in entries(folder) if name.endswith(".py")]


def _imports(file: str, module: str) -> bool:
    name = os.path.basename(os.path.dirname(module) if module.endswith("__init__.py") else module)
    last = name.removesuffix(".py")
    text = text_of(file)
    named = [spelled for spelled in _spelled(text) if spelled.endswith(last)] if last in text else []
    return any(file_of(spelled, file) == module for spelled in named)


@lru_cache(maxsize=512)
def _spelled(text: str) -> tuple[str, ...]:
    """What a file imports, once for all that it may be a caller of."""
    return tuple(spelled for spelled, _, _ in mentioned(text))
