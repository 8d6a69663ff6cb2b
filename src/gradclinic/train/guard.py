"""What happens when gradients are not finite, so that no weight silently becomes NaN."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from gradclinic.train.errors import NonFiniteError
from gradclinic.train.gradients import all_finite
from gradclinic.train.layout import unwrapped

Action = Literal["skip", "stop", "rollback"]
PATIENCE = 20
"""So many updates in a row are skipped before the run is stopped: it is not training any more."""


def named_tensors(models: Sequence[nn.Module]) -> dict[str, Tensor]:
    """Weights and buffers by name, of all models."""
    return {
        name if len(models) == 1 else f"{number}.{name}": tensor.detach()
        for number, model in enumerate(models)
        for source in (unwrapped(model).named_parameters(), unwrapped(model).named_buffers())
        for name, tensor in source
    }


def broken_weights(models: Sequence[nn.Module]) -> list[str]:
    """Names of weights and buffers that hold NaN or infinity."""
    floating = {name: tensor for name, tensor in named_tensors(models).items() if tensor.is_floating_point()}
    return [name for name, tensor in floating.items() if not all_finite(tensor)]


def refuse_broken_weights(models: Sequence[nn.Module], when: str) -> None:
    if broken := broken_weights(models):
        raise NonFiniteError(
            f"{when}, {len(broken)} weights or running statistics are NaN or infinite, the first is "
            f"{broken[0]!r}; go back to a checkpoint, and train with nonfinite='rollback', clipping or a "
            "lower learning rate"
        )


class Snapshot:
    """Weights, buffers and optimizers as they were when their gradients were last finite."""

    def __init__(
        self, models: Sequence[nn.Module], optimizers: Sequence[Optimizer], rest: Sequence[Any]
    ) -> None:
        self._live = list(named_tensors(models).values())
        self._kept = [tensor.clone() for tensor in self._live]
        self._optimizers = [(optimizer, copy.deepcopy(optimizer.state_dict())) for optimizer in optimizers]
        self._rest = [(part, copy.deepcopy(part.state_dict())) for part in rest]

    @torch.no_grad()
    def restore(self) -> None:
        for live, kept in zip(self._live, self._kept, strict=True):
            live.copy_(kept)
        for part, state in (*self._optimizers, *self._rest):
            part.load_state_dict(copy.deepcopy(state))
