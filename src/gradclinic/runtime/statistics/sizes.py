"""The norms of one optimizer's gradients, which come in the same shapes update after update."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import torch

from gradclinic.runtime.statistics import meter
from gradclinic.runtime.statistics.meter import Tensors

_SMALL = 1024
"""Elements up to which laying tensors side by side is cheaper than measuring each by itself,"""
_FEWEST = 4
"""if so many have the same shape."""


class Sizes:
    def __init__(self) -> None:
        self._alike: list[list[int]] = []
        """Positions of tensors of one shape."""
        self._others: list[int] | None = None
        """The rest; None for all."""
        self._planned = 0

    def plan(self, tensors: Tensors) -> None:
        """Look at the tensors once; those of the next updates are like them, or `read` copes."""
        found: defaultdict[tuple[torch.Size, torch.dtype], list[int]] = defaultdict(list)
        for position, tensor in enumerate(tensors):
            if meter.is_plain(tensor) and tensor.is_cpu and 0 < tensor.numel() <= _SMALL and _exact(tensor):
                found[tensor.shape, tensor.dtype].append(position)
        self._alike = [positions for positions in found.values() if len(positions) >= _FEWEST]
        taken = {position for positions in self._alike for position in positions}
        self._others = [i for i in range(len(tensors)) if i not in taken] if taken else None
        self._planned = len(tensors)

    def read(self, tensors: Tensors, extra: Sequence[torch.Tensor]) -> tuple[list[float], list[float]]:
        """The norm of each tensor, and the numbers in `extra`, with as few transfers as can be."""
        if self._others is not None and self._planned == len(tensors):
            try:
                return self._together(tensors, self._others), meter.read(extra)
            except RuntimeError:  # other shapes than before: some other parameter was left out
                self.plan([])
        norms = meter.norms(tensors)
        values = meter.read([*norms, *(scalar.to(norms[0]) if norms else scalar for scalar in extra)])
        return values[: len(tensors)], values[len(tensors) :]

    def _together(self, tensors: Tensors, others: list[int]) -> list[float]:
        values = [0.0] * len(tensors)
        for positions in self._alike:
            beside = torch.stack([tensors[position] for position in positions])
            norms = torch.linalg.vector_norm(beside.reshape(len(positions), -1), dim=1)
            for position, value in zip(positions, norms.tolist(), strict=True):
                values[position] = value
        rest = meter.read(meter.norms([tensors[position] for position in others]))
        for position, value in zip(others, rest, strict=True):
            values[position] = value
        return values


def _exact(tensor: torch.Tensor) -> bool:
    """Half precision is summed in single elsewhere."""
    return tensor.dtype in (torch.float32, torch.float64)
