"""A small Deep-Potential-like force field: energy, forces and virial of atoms in a periodic box.

Each task (water, ice, …) has its own per-type energy bias, case embedding, input statistics and
cut-off, and may share the networks with the others, which is how multi-task potentials are trained.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from periodic import Frame


class Descriptor(nn.Module):
    """Smooth, rotation-invariant features of each atom's neighbourhood."""

    def __init__(self, types: int, width: int, axes: int, cutoff: float) -> None:
        super().__init__()
        self.cutoff = cutoff
        self.axes = axes
        self.type_embedding = nn.Embedding(types, 4)
        self.embed = nn.Sequential(nn.Linear(5, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.register_buffer("mean", torch.zeros(types, 4))
        self.register_buffer("std", torch.ones(types, 4))

    def forward(self, coord: Tensor, types: Tensor, neighbours: Tensor) -> Tensor:
        local = neighbours.shape[0]
        present = neighbours >= 0
        index = neighbours.clamp(min=0)
        offset = coord[index] - coord[:local, None]
        # An absent neighbour is moved off the origin: the square root has no slope at zero.
        squared = torch.where(present, offset.square().sum(-1), 1.0)
        distance = squared.sqrt()
        weight = torch.where(present, self._switch(distance) / distance, 0.0)
        environment = torch.cat([weight[..., None], weight[..., None] * offset / distance[..., None]], -1)
        environment = (environment - self.mean[types[:local]][:, None]) / self.std[types[:local]][:, None]
        environment = environment * present[..., None]
        features = self.embed(torch.cat([environment[..., :1], self.type_embedding(types[index])], -1))
        mixed = features.transpose(1, 2) @ environment / neighbours.shape[1]
        return (mixed @ mixed[:, : self.axes].transpose(1, 2)).flatten(1)

    def _switch(self, distance: Tensor) -> Tensor:
        """One near the atom, zero from the cut-off on, smooth between."""
        x = (distance / self.cutoff).clamp(max=1.0)
        return 1 + x**3 * (-10 + x * (15 - 6 * x))


class Fitting(nn.Module):
    """The energy of one atom from its features, its type and the task."""

    def __init__(self, features: int, types: int, width: int, case: Tensor) -> None:
        super().__init__()
        hidden = (nn.Linear(features + len(case), width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.net = nn.Sequential(*hidden, nn.Linear(width, 1))
        self.register_buffer("case", case)
        self.register_buffer("bias", torch.zeros(types))

    def forward(self, features: Tensor, types: Tensor) -> Tensor:
        case = self.case.expand(features.shape[0], -1)
        return self.net(torch.cat([features, case], -1)).squeeze(-1) + self.bias[types]


class Potential(nn.Module):
    """Energy, forces and virial; forces are minus the energy's gradient on the coordinates."""

    def __init__(self, descriptor: Descriptor, fitting: Fitting) -> None:
        super().__init__()
        self.descriptor = descriptor
        self.fitting = fitting

    def forward(self, frame: Frame) -> dict[str, Tensor]:
        coord = frame.coord.detach().requires_grad_(True)
        return fold(self.lower(coord, frame.types, frame.neighbours), frame)

    def lower(self, coord: Tensor, types: Tensor, neighbours: Tensor) -> dict[str, Tensor]:
        """The part worth compiling: it works on local and ghost atoms and knows no box."""
        local = neighbours.shape[0]
        energy = self.fitting(self.descriptor(coord, types, neighbours), types[:local]).sum()
        (slope,) = torch.autograd.grad(energy, coord, create_graph=self.training)
        made = {"energy": energy, "force": -slope, "virial": -slope.transpose(0, 1) @ coord}
        # Nobody differentiates an evaluation: its results keep no graph alive.
        return made if self.training else {name: value.detach() for name, value in made.items()}


def fold(lower: dict[str, Tensor], frame: Frame) -> dict[str, Tensor]:
    """Give each ghost's force back to the atom it is an image of."""
    local = frame.neighbours.shape[0]
    force = lower["force"].new_zeros(local, 3).index_add(0, frame.mapping, lower["force"])
    return {"energy": lower["energy"], "force": force, "virial": lower["virial"]}
