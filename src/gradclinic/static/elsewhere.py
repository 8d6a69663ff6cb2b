"""Classes of models that stand in other files of the project, as far as an evaluation depends on them."""

from __future__ import annotations

import ast
import os
import re
from functools import lru_cache
from itertools import islice

from gradclinic.frozen import frozen
from gradclinic.static.imports import bindings, mentioned
from gradclinic.static.layers import any_differentiates, layers_of_class
from gradclinic.static.own_methods import Written
from gradclinic.static.project_files import MOST_HOPS, file_of, parsed, version_of
from gradclinic.static.survey import Survey
from gradclinic.static.syntax import names_in
from gradclinic.static.values import Lib

MOST_READ = 24
"""Files of a project, in search of a layer."""
_MINDS = (
    r"(?i:drop_?(?:out|path)|batch_?norm|stochastic_?depth|multihead|rrelu|resnet|from_pretrained)|nn\.Transformer"
    r"|\.training\b|\b(?:torchvision|timm|transformers|hub|monai|mm\w+|detectron2|fairseq|smp)\."
    r"|import (?:timm|torchvision)|from (?:timm|torchvision|transformers|monai|fairseq)"
)
"""Layers that mind the mode, and libraries full of them."""


@frozen
class Seen:
    """What the file of a class shows of it."""

    layers: tuple[str, ...] | None
    """Those that care for the mode."""
    differentiates: bool
    """A forward there computes gradients itself."""
    sets_mode: frozenset[str]
    """The methods that call train() or eval()."""
    methods: frozenset[str]


def class_elsewhere(name: str, path: str) -> Seen | None:
    """The class that the file at `path` knows as `package.module.Name`; None when it is not in sight."""
    place = _place(name, path)
    found = _defined(*place) if place is not None else None
    return found if isinstance(found, Seen) else None


def computing_elsewhere(name: str, path: str, *, by_layers: bool) -> frozenset[str]:
    """The methods of that class that run forward, or layers with weights as it does."""
    place = _place(name, path)
    return _computing(*place, by_layers) if place is not None else frozenset()


def _place(name: str, path: str, hops: int = MOST_HOPS) -> tuple[str, int, int, str] | None:
    """The file that such a class stands in, when that was changed, its size, and the class's name there."""
    module, _, last = name.rpartition(".")
    file = file_of(module, path) if module.strip(".") and hops else None
    if file is None:
        return None
    place = (file, *version_of(file), last)
    found = _defined(*place)
    return _place(found, file, hops - 1) if isinstance(found, str) else place


def some_layer_minds(path: str) -> bool:
    """Whether a layer that minds the mode is spoken of in the file or in what it imports of its project.

    For a model of which nobody can tell what it is made of: by a factory, a registry, a name of a setting.
    """
    waiting = [path]
    for number, file in enumerate(waiting):  # which grows meanwhile
        text = _text(file)
        if text is None or number == MOST_READ or re.search(_MINDS, text):
            return True
        found = (file_of(spelled, file) for spelled, _, _ in mentioned(text))
        waiting += [other for other in dict.fromkeys(found) if other and other not in waiting]
    return False


def layers_spoken_of(path: str, *, beside: bool = False) -> tuple[str, ...]:
    """A layer that minds the mode and is made in the file, in what it imports of its project or `beside` it:
    for a model of which nobody can tell what it is made of. Beside a program there are other programs."""
    folder = os.path.dirname(path)
    beside = beside and "__main__" not in (_text(path) or "__main__")
    near = sorted(os.listdir(folder or os.curdir)) if beside else []
    waiting = list(dict.fromkeys([path, *(os.path.join(folder, n) for n in near if n.endswith(".py"))]))
    for file in islice(waiting, MOST_READ):  # which grows meanwhile
        if not os.path.isfile(file):
            continue
        layer, names = _spoken_of(file, *version_of(file))
        if layer:
            return (f"{layer} in {os.path.basename(file)}",)
        waiting += [other for name in names if (other := file_of(name, file)) and other not in waiting]
    return ()


@lru_cache(maxsize=512)
def _spoken_of(file: str, changed: int, size: int) -> tuple[str, tuple[str, ...]]:
    """A layer that minds the mode, and what the file imports from."""
    text = _text(file) or ""
    made = re.search(r"\bnn\.(Dropout\w*|BatchNorm\w*)\(", text)
    return (made[1], ()) if made else ("", tuple(dict.fromkeys(name for name, _, _ in mentioned(text))))


def _text(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, ValueError):
        return None


@lru_cache(maxsize=256)
def _defined(file: str, changed: int, size: int, name: str) -> Seen | str | None:
    """What is seen of a class, or the name that it is imported by."""
    tree = parsed(file, changed, size)
    for node in tree.body if tree is not None else ():
        if isinstance(node, ast.ClassDef) and node.name == name:
            assert tree is not None
            return _seen(Survey(tree), node)
        if isinstance(node, ast.ImportFrom):
            found = bindings(node).get(name)
            if isinstance(found, Lib):
                return found.name
    return None


@lru_cache(maxsize=256)
def _computing(file: str, changed: int, size: int, name: str, by_layers: bool) -> frozenset[str]:
    tree = parsed(file, changed, size)
    written = Written([tree] if tree is not None else [])
    cls = written.classes.get(name)
    return written.computing(cls, by_layers=by_layers) if cls is not None else frozenset()


def _seen(survey: Survey, cls: ast.ClassDef) -> Seen:
    methods = [part for part in cls.body if isinstance(part, ast.FunctionDef)]
    return Seen(
        layers_of_class(survey, cls),
        any_differentiates(survey),
        frozenset(part.name for part in methods if {"train", "eval"} & set(names_in(part))),
        frozenset(part.name for part in methods),
    )
