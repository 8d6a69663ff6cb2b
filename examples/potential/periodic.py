"""Atoms in a periodic box: local atoms first, then the images (ghosts) that lie within the cut-off."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import torch
from torch import Tensor


@dataclass(frozen=True)
class Frame:
    """One configuration with its labels. `mapping` names the local atom each row is an image of."""

    coord: Tensor
    types: Tensor
    neighbours: Tensor
    mapping: Tensor
    energy: Tensor
    force: Tensor
    virial: Tensor


def make_frame(
    atoms: int, types: int, cutoff: float, *, box: float = 4.0, neighbours: int = 24, seed: int = 0
) -> Frame:
    """Atoms on a jittered lattice, so that none overlap, with made-up labels."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    side = round(atoms ** (1 / 3) + 0.499)
    lattice = torch.tensor(list(product(range(side), repeat=3)), dtype=torch.float64)[:atoms]
    local = (lattice + 0.5) * (box / side) + 0.15 * normal(atoms, 3)
    kinds = torch.randint(types, (atoms,), generator=generator)
    shifts = torch.tensor([s for s in product((-1, 0, 1), repeat=3) if any(s)], dtype=torch.float64) * box
    images = (local[None] + shifts[:, None]).reshape(-1, 3)
    near = torch.cdist(images, local).amin(1) < cutoff
    coord = torch.cat([local, images[near]])
    mapping = torch.cat([torch.arange(atoms), torch.arange(atoms).repeat(len(shifts))[near]])
    return Frame(
        coord,
        kinds[mapping],
        _nearest(coord, atoms, cutoff, neighbours),
        mapping,
        energy=normal(),
        force=normal(atoms, 3),
        virial=normal(3, 3),
    )


def _nearest(coord: Tensor, atoms: int, cutoff: float, most: int) -> Tensor:
    """Indices of each local atom's neighbours, nearest first, -1 where there are fewer than `most`."""
    distance = torch.cdist(coord[:atoms], coord)
    distance[torch.arange(atoms), torch.arange(atoms)] = torch.inf
    near, index = distance.sort(dim=1)
    return torch.where(near < cutoff, index, -1)[:, :most]
