"""What models, gradients and optimizers hold in memory, tensor by tensor."""

from __future__ import annotations

from typing import Any

import torch

from gradclinic.facts.memory import Held, MemoryAccount
from gradclinic.runtime.actors import Actors, parameters_of
from gradclinic.runtime.statistics import meter
from gradclinic.runtime.statistics.naming import named


def weigh(actors: Actors) -> MemoryAccount:
    """A tensor that several hold is counted once."""
    held: list[Held] = []
    seen: set[int] = set()
    for _, optimizer in actors.optimizers():
        parameters = parameters_of(optimizer)
        for parameter, info in zip(parameters, named(parameters, actors), strict=True):
            if id(parameter) not in seen:
                seen.add(id(parameter))
                kept = optimizer.state.get(parameter, {})
                state = sum(_bytes(value) for value in kept.values())
                held.append(Held(info.name, _bytes(parameter), _bytes(parameter.grad), state))
    for _, model in actors.models():
        rest = [*model.named_parameters(), *model.named_buffers()]
        for name, tensor in rest:
            if id(tensor) not in seen:
                seen.add(id(tensor))
                held.append(Held(name, _bytes(tensor), _bytes(tensor.grad), trained=False))
    return MemoryAccount(tuple(held))


def _bytes(value: Any) -> int:
    """Of the part that lies on this rank."""
    if not isinstance(value, torch.Tensor):
        return 0
    part = meter.local(value)
    return part.numel() * part.element_size()
