"""What the user's models call the tensors an optimizer holds."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from gradclinic.facts.training import TensorInfo
from gradclinic.runtime.actors import Actors


def named(tensors: Iterable[torch.Tensor], actors: Actors) -> tuple[TensorInfo, ...]:
    known = _known(actors)
    found = []
    for position, tensor in enumerate(tensors):
        name, role = known.get(id(tensor), (f"parameter {position}", ""))
        found.append(TensorInfo(name, tuple(tensor.shape), role))
    return tuple(found)


def _known(actors: Actors) -> dict[int, tuple[str, str]]:
    models = [(actors.known[actor].name, model) for actor, model in actors.models()]
    names: dict[int, tuple[str, str]] = {}
    # The largest model first: a part of it that was called by itself must not name its parameters.
    for called, model in sorted(models, key=lambda one: -sum(1 for _ in one[1].modules())):
        for path, module in model.named_modules():
            for name, parameter in module.named_parameters(recurse=False):
                inner = f"{path}.{name}" if path else name
                full = f"{called}.{inner}" if len(models) > 1 else inner
                names.setdefault(id(parameter), (full, type(module).__name__))
    return names
