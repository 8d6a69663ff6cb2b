"""The weights as they were before an update, to tell afterwards how far each one moved."""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass

import torch

from gradclinic.facts.training import ABSENT, Sample
from gradclinic.runtime.statistics import meter

_MOST_ELEMENTS = 50_000_000
"""A copy of more than this is not made: memory that is not there cannot be borrowed."""


@dataclass
class Snapshot:
    positions: list[int]
    copies: list[torch.Tensor]
    tensors: int
    scale: float | None
    largest: array[float]
    zeros: array[float]

    @classmethod
    def take(cls, parameters: list[torch.Tensor], scale: float | None) -> Snapshot:
        positions = _affordable(parameters)
        copies = [meter.local(parameters[i]).detach().clone() for i in positions]
        largest = array("d", [ABSENT]) * len(parameters)
        zeros = array("d", [ABSENT]) * len(parameters)
        measured, where = [], []
        for i in positions:
            gradient = parameters[i].grad
            if gradient is None or gradient.numel() == 0 or gradient.is_complex():
                continue
            plain = meter.local(gradient)
            low, high = torch.aminmax(plain)
            measured += [low.double(), high.double(), torch.count_nonzero(plain).double()]
            where.append((i, gradient.numel()))
        values = meter.read(measured)
        for place, (i, size) in enumerate(where):
            least, most, filled = values[3 * place : 3 * place + 3]
            largest[i] = max(abs(least), abs(most)) / (scale or 1.0)
            zeros[i] = 1.0 - filled / size
        return cls(positions, copies, len(parameters), scale, largest, zeros)

    def compare(self, parameters: list[torch.Tensor], index: int) -> Sample:
        """Consumes the copies: each becomes the old weights minus the new ones."""
        before = meter.norms(self.copies)
        now = [meter.local(parameters[i]).detach() for i in self.positions]
        moved = meter.norms(_differences(self.copies, now))
        values = meter.read([*before, *moved])
        weights = array("d", [ABSENT]) * self.tensors
        updates = array("d", [ABSENT]) * self.tensors
        for place, position in enumerate(self.positions):
            weights[position] = values[place]
            updates[position] = values[len(self.positions) + place]
        against = self._against([parameters[i].grad for i in self.positions])
        self.copies.clear()
        return Sample(index, weights, updates, self.largest, self.zeros, against)

    def _against(self, gradients: list[torch.Tensor | None]) -> float | None:
        """The cosine between what was subtracted from the weights and their gradients."""
        pairs = [
            (moved.flatten(), meter.local(gradient).flatten())
            for moved, gradient in zip(self.copies, gradients, strict=True)
            if gradient is not None and gradient.shape == moved.shape and gradient.dtype == moved.dtype
        ]
        if not pairs:
            return None
        products = meter.read([torch.dot(moved, gradient) for moved, gradient in pairs])
        sizes = meter.read(meter.norms([one for pair in pairs for one in pair]))
        whole = meter.total(sizes[::2]) * meter.total(sizes[1::2])
        cosine = sum(products) / whole if whole > 0 else math.nan
        return cosine if math.isfinite(cosine) else None


def _affordable(parameters: list[torch.Tensor]) -> list[int]:
    """All tensors of an ordinary model; of a large one as many, evenly spread, as may be copied."""
    trained = [i for i, p in enumerate(parameters) if p.grad is not None and meter.local(p).numel() > 0]
    elements = sum(parameters[i].numel() for i in trained)
    stride = max(1, math.ceil(elements / _MOST_ELEMENTS))
    return trained[::stride]


def _differences(old: list[torch.Tensor], new: list[torch.Tensor]) -> list[torch.Tensor]:
    if old:
        torch._foreach_sub_(old, new)
    return old
