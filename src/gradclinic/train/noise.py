"""Gradient noise that decays with the updates, from a random stream of its own."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gradclinic.train.errors import TrainStepError


class Noise:
    """Gaussian noise of variance `eta / (1 + update) ** gamma` on every gradient, after clipping.

    Its own generator leaves the user's random stream as it is. Every rank of a replicated model
    draws the same numbers, so that the replicas stay equal; shards draw each their own.
    """

    def __init__(self, eta: float = 0.01, gamma: float = 0.55, seed: int = 0) -> None:
        if eta <= 0:
            raise TrainStepError(f"Noise(eta={eta!r}): expected a positive number")
        self.eta = eta
        self.gamma = gamma
        self.seed = seed
        self._generators: dict[torch.device, torch.Generator] = {}

    def add_(self, gradients: list[Tensor], update: int) -> None:
        deviation = (self.eta / (1 + update) ** self.gamma) ** 0.5
        for gradient in gradients:
            local = _own_part(gradient)
            generator = self._generator(local.device, _shard_number(gradient))
            drawn = torch.randn(local.shape, generator=generator, device=local.device, dtype=local.dtype)
            local.add_(drawn, alpha=deviation)

    def _generator(self, device: torch.device, shard: int) -> torch.Generator:
        if device not in self._generators:
            self._generators[device] = torch.Generator(device).manual_seed(self.seed + shard)
        return self._generators[device]

    def state_dict(self) -> dict[str, Any]:
        return {str(device): generator.get_state() for device, generator in self._generators.items()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._generators = {}
        for name, saved in state.items():
            self._generator(torch.device(name), 0).set_state(saved)

    def __repr__(self) -> str:
        return f"Noise(eta={self.eta:g}, gamma={self.gamma:g})"


def _own_part(gradient: Tensor) -> Tensor:
    to_local = getattr(gradient, "to_local", None)
    return gradient if to_local is None else to_local()


def _shard_number(gradient: Tensor) -> int:
    mesh = getattr(gradient, "device_mesh", None)
    return 0 if mesh is None else int(mesh.get_rank())
