"""Classes of models that stand in other files of the project: which of their layers care for the mode."""

from __future__ import annotations

import ast
import os
from functools import lru_cache

from gradclinic.static.imports import bindings
from gradclinic.static.layers import layers_of_class
from gradclinic.static.project_files import MOST_HOPS, file_of, parsed
from gradclinic.static.survey import Survey
from gradclinic.static.values import Lib

Layers = tuple[str, ...] | None


def layers_elsewhere(name: str, path: str, hops: int = MOST_HOPS) -> Layers:
    """Of the class that the file at `path` knows as `package.module.Name`; None when it is not in sight."""
    module, _, last = name.rpartition(".")
    file = file_of(module, path) if module.strip(".") and hops else None
    if file is None:
        return None
    version = os.stat(file)
    found = _defined(file, version.st_mtime_ns, version.st_size, last)
    return layers_elsewhere(found, file, hops - 1) if isinstance(found, str) else found


@lru_cache(maxsize=256)
def _defined(file: str, changed: int, size: int, name: str) -> Layers | str:
    """The layers of a class, or the name that it is imported by."""
    tree = parsed(file, changed, size)
    for node in tree.body if tree is not None else ():
        if isinstance(node, ast.ClassDef) and node.name == name:
            assert tree is not None
            return layers_of_class(Survey(tree), node)
        if isinstance(node, ast.ImportFrom):
            found = bindings(node).get(name)
            if isinstance(found, Lib):
                return found.name
    return None
