"""The weights as they were before an update, to tell afterwards how far each one moved."""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass

import torch

from gradclinic.facts.training import ABSENT, Sample
from gradclinic.runtime.statistics import meter
from gradclinic.runtime.statistics.spread import histograms

_MOST_ELEMENTS = 50_000_000
"""A copy of more than this is not made: memory that is not there cannot be borrowed."""


@dataclass
class Snapshot:
    positions: list[int]
    copies: list[torch.Tensor]
    tensors: int
    largest: array[float]
    zeros: array[float] | None
    """None when it was not the time for a closer look."""
    exponents: array[float]

    @classmethod
    def take(
        cls, parameters: list[torch.Tensor], scale: float | None, *, closely: bool, spread: bool
    ) -> Snapshot:
        positions = _affordable(parameters)
        copies = [meter.local(parameters[i]).detach().clone() for i in positions]
        gradients = {
            i: meter.local(gradient)
            for i in positions
            if (gradient := parameters[i].grad) is not None and not gradient.is_complex()
        }
        largest = array("d", [ABSENT]) * len(parameters)
        pairs = [torch.aminmax(gradient) for gradient in gradients.values()]
        values = meter.read([bound for pair in pairs for bound in pair])
        for place, i in enumerate(gradients):
            low, high = values[2 * place : 2 * place + 2]
            largest[i] = max(abs(low), abs(high)) / (scale or 1.0)
        zeros = _zeros(gradients, len(parameters)) if closely else None
        exponents = histograms(gradients, len(parameters)) if spread and not scale else array("f")
        return cls(positions, copies, len(parameters), largest, zeros, exponents)

    @torch.no_grad()
    def compare(self, parameters: list[torch.Tensor], index: int) -> Sample:
        """Consumes the copies: each becomes the old weights minus the new ones."""
        before = meter.norms(self.copies)
        now = [meter.local(parameters[i]).detach() for i in self.positions]
        if self.copies:
            torch._foreach_sub_(self.copies, now)
        values = meter.read([*before, *meter.norms(self.copies)])
        weights = array("d", [ABSENT]) * self.tensors
        updates = array("d", [ABSENT]) * self.tensors
        for place, position in enumerate(self.positions):
            weights[position] = values[place]
            updates[position] = values[len(self.positions) + place]
        against = None if self.zeros is None else self._against([parameters[i].grad for i in self.positions])
        self.copies.clear()
        return Sample(index, weights, updates, self.largest, self.zeros or (), against, self.exponents)

    def _against(self, gradients: list[torch.Tensor | None]) -> float | None:
        """The cosine between what was subtracted from the weights and their gradients."""
        here = [None if gradient is None else meter.local(gradient) for gradient in gradients]
        pairs = [
            (moved.flatten(), gradient.flatten())
            for moved, gradient in zip(self.copies, here, strict=True)
            if gradient is not None and gradient.shape == moved.shape and gradient.dtype == moved.dtype
        ]
        if not pairs:
            return None
        products = meter.read([torch.dot(moved, gradient) for moved, gradient in pairs])
        sizes = meter.read(meter.norms([one for pair in pairs for one in pair]))
        whole = meter.total(sizes[::2]) * meter.total(sizes[1::2])
        cosine = sum(products) / whole if whole > 0 else math.nan
        return cosine if math.isfinite(cosine) else None


def _zeros(gradients: dict[int, torch.Tensor], tensors: int) -> array[float]:
    """The share of exact zeros in each gradient."""
    zeros = array("d", [ABSENT]) * tensors
    filled = meter.read([torch.count_nonzero(gradient) for gradient in gradients.values()])
    for (i, gradient), count in zip(gradients.items(), filled, strict=True):
        zeros[i] = 1.0 - count / max(1, gradient.numel())
    return zeros


def _affordable(parameters: list[torch.Tensor]) -> list[int]:
    """All tensors of an ordinary model; of a large one as many, evenly spread, as may be copied."""
    trained = [i for i, p in enumerate(parameters) if p.grad is not None and meter.local(p).numel() > 0]
    elements = sum(parameters[i].numel() for i in trained)
    stride = max(1, math.ceil(elements / _MOST_ELEMENTS))
    return trained[::stride]
