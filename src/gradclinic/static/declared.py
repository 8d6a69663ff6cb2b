"""What a function declares its parameters to be: `def train(model: BertModel, ...)`."""

from __future__ import annotations

import ast

from gradclinic.static.elsewhere import class_elsewhere
from gradclinic.static.layers import layers_of_class
from gradclinic.static.library_layers import PRETRAINED, layers_of_library
from gradclinic.static.modules import resolved
from gradclinic.static.syntax import names_in
from gradclinic.static.values import EITHER, ClassDef, Frame, Lib, Model, Value, library
from gradclinic.static.walk import Walk


def learn_layers(walk: Walk, frame: Frame, parameters: list[ast.arg], given: dict[str, Value]) -> None:
    """Which layers of a model mind its mode, where nothing else tells and its declared class has such."""
    for parameter in parameters:
        value = given.get(parameter.arg)
        if not isinstance(parameter.annotation, (ast.Name, ast.Attribute)) or not isinstance(value, Model):
            continue
        if value.layers is None and not value.origin and EITHER[0] not in value.attrs:
            value.layers = _layers(walk, frame, parameter.annotation) or None


def _layers(walk: Walk, frame: Frame, declared: ast.Name | ast.Attribute) -> tuple[str, ...] | None:
    first, *rest = reversed(names_in(declared))
    found = _found(frame, first)
    if isinstance(found, Lib) and rest:
        found = library(".".join([found.name, *rest]))
    known = resolved(walk, found) if found is not None else None
    if isinstance(known, ClassDef):
        return layers_of_class(walk.survey, known.node)
    if not isinstance(known, Lib):
        return None
    seen = class_elsewhere(known.name, frame.module.path or walk.path)
    if seen is not None:
        return seen.layers
    # Of transformers, what is handed around was loaded.
    loaded = known.name + (PRETRAINED if known.name.startswith("transformers.") else "")
    return layers_of_library(loaded, None, ())


def _found(frame: Frame | None, name: str) -> Value | None:
    while frame is not None:
        if name in frame.vars:
            return frame.vars[name]
        frame = frame.parent
    return None
