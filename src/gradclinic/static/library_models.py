"""Models that libraries make, with what is known of them by their names."""

from __future__ import annotations

import ast

from gradclinic.static.library_layers import drops, is_made_in_train_mode, layers_of_library
from gradclinic.static.roles import named
from gradclinic.static.values import Const, Mode, Model, Unknown, Value
from gradclinic.static.walk import Arguments, Walk


def know_layers(walk: Walk, made: Model, name: str, args: Arguments) -> None:
    """Of a model that a library makes under a name that tells of them."""
    first = args.positional[0] if args.positional else None
    layers = layers_of_library(name, first.value if isinstance(first, Const) else None, args.keywords)
    if layers is None or walk.survey.alters_layers:
        return
    if any(map(drops, layers)) and walk.survey.chooses_dropout:
        return
    made.layers = layers
    if is_made_in_train_mode(name):
        made.mode = Mode(True)


def from_hub(walk: Walk, args: Arguments, node: ast.Call) -> Value:
    """A model if it is called one, and of torchvision by the name of its repository."""
    path = f"torch.hub.load@{node.lineno}"
    model = named(walk, walk.assigning, path, None) if walk.assigning else None
    asked = [value.value for value in args.positional if isinstance(value, Const)]
    if not isinstance(model, Model) or len(asked) < 2 or not str(asked[0]).startswith("pytorch/vision"):
        return model or Unknown(path)
    know_layers(walk, model, f"torchvision.models.{asked[1]}", args)
    return model
