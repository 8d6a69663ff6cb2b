"""A look at the smallest gradients of an update, which tells whether the others deserve one too.

Biases and gains sit behind every layer and are a hundredth of a model. A gradient that is not finite, or far
larger than usual, was as a rule handed on through their layers and shows in them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from gradclinic.runtime.statistics import meter

_SHARE = 0.05
"""Of all elements that a glance may look at: more would be no cheaper than measuring everything."""
_SPREAD = 8
"""One tensor in so many at least must be small, so that every part of the model has some."""
JUMP = 10.0
"""Times the usual size is odd."""
_WEIGHT = 0.1


class Glance:
    def __init__(self) -> None:
        self._positions: list[int] = []
        self._usual: float | None = None

    def plan(self, gradients: Sequence[torch.Tensor | None]) -> None:
        """Choose the tensors to look at, by gradients like those to come."""
        present = [(i, gradient) for i, gradient in enumerate(gradients) if gradient is not None]
        small = [(i, gradient) for i, gradient in present if gradient.dim() == 1]
        kinds = {(gradient.dtype, gradient.device) for _, gradient in small}
        few = sum(g.numel() for _, g in small) <= _SHARE * sum(g.numel() for _, g in present)
        everywhere = _SPREAD * len(small) >= len(present)
        self._positions = [i for i, _ in small] if few and everywhere and len(kinds) == 1 else []

    def read(
        self, parameters: Sequence[torch.Tensor], scale: float, extra: Sequence[torch.Tensor]
    ) -> list[float] | None:
        """The numbers in `extra`; None if they or the gradients are out of the ordinary or cannot be told."""
        small = [grad for i in self._positions if (grad := parameters[i].grad) is not None]
        if not small or any(grad.dim() != 1 for grad in small):
            return None
        # In single precision: the squares of scaled gradients overflow in half.
        size, *told = meter.read([torch.linalg.vector_norm(torch.cat(small).float()), *extra])
        ordinary = self._is_ordinary(size / scale) and all(map(math.isfinite, told))
        return told if ordinary else None

    def _is_ordinary(self, size: float) -> bool:
        if not math.isfinite(size):
            return False
        usual = size if self._usual is None else self._usual
        self._usual = (1 - _WEIGHT) * usual + _WEIGHT * size
        return size <= JUMP * usual
