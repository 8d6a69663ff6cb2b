"""How gradients are clipped: by norm (all, per layer, per group), by value, or adaptively."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor

from gradclinic.train.errors import TrainStepError
from gradclinic.train.layout import Layout

Per = Literal["all", "layer", "group"]
Factor = float | list[float]
"""One for all tensors, or one for each."""
TINY = 1e-6
"""What torch.nn.utils.clip_grad_norm_ adds to the norm; kept, so that both give one result."""


class Clip:
    """Made by `Clip.norm`, `Clip.value` or `Clip.adaptive`; given to `TrainStep(clip=…)`.

    A clip never touches a gradient. It answers with the factor to apply, so that unscaling,
    window normalisation and clipping are one multiplication.
    """

    bound: float | None = None
    """Clamp every element to this after scaling."""
    limit: float | None = None
    """The norm that all gradients together never exceed, where that is what it does."""

    @staticmethod
    def norm(max_norm: float, per: Per = "all") -> Clip:
        """Scale gradients down to `max_norm`: all together, or each layer or optimizer group alone."""
        _positive("Clip.norm", "max_norm", max_norm)
        if per not in ("all", "layer", "group"):
            raise TrainStepError(f"Clip.norm(per={per!r}): expected 'all', 'layer' or 'group'")
        return _NormClip(max_norm) if per == "all" else _PartwiseClip(max_norm, per)

    @staticmethod
    def value(limit: float) -> Clip:
        """Clamp every element to ±`limit`. This bends the gradient's direction; a norm does not."""
        _positive("Clip.value", "limit", limit)
        return _ValueClip(limit)

    @staticmethod
    def adaptive(quantile: float = 0.9, history: int = 256) -> Clip:
        """Scale down to a quantile of the last `history` norms; no clipping before there are ten."""
        if not 0 < quantile <= 1:
            raise TrainStepError(f"Clip.adaptive(quantile={quantile!r}): expected a number in (0, 1]")
        if history < _AdaptiveClip.enough:
            raise TrainStepError(
                f"Clip.adaptive(history={history!r}): expected at least {_AdaptiveClip.enough} updates"
            )
        return _AdaptiveClip(quantile, history)

    def factor(self, norms: Tensor, total: float, layout: Layout, positions: Sequence[int]) -> Factor:
        """What to multiply the gradients by, from their true norms."""
        return 1.0

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        pass


class _NormClip(Clip):
    def __init__(self, max_norm: float) -> None:
        self.limit = self.max_norm = max_norm

    def factor(self, norms: Tensor, total: float, layout: Layout, positions: Sequence[int]) -> Factor:
        return min(1.0, self.max_norm / (total + TINY))

    def __repr__(self) -> str:
        return f"Clip.norm({self.max_norm:g})"


class _PartwiseClip(Clip):
    def __init__(self, max_norm: float, per: Per) -> None:
        self.max_norm = max_norm
        self.per = per

    def factor(self, norms: Tensor, total: float, layout: Layout, positions: Sequence[int]) -> Factor:
        parts = layout.layers if self.per == "layer" else layout.groups
        part_of = torch.tensor([parts[position] for position in positions])
        wide = norms.to("cpu", torch.float64)
        squares = torch.zeros(max(parts) + 1, dtype=torch.float64).index_add_(0, part_of, wide.square())
        factors = (self.max_norm / (squares.sqrt() + TINY)).clamp_(max=1.0)
        found: list[float] = factors[part_of].tolist()
        return found

    def __repr__(self) -> str:
        return f"Clip.norm({self.max_norm:g}, per={self.per!r})"


class _ValueClip(Clip):
    def __init__(self, limit: float) -> None:
        self.bound = limit

    def __repr__(self) -> str:
        return f"Clip.value({self.bound:g})"


class _AdaptiveClip(Clip):
    enough = 10

    def __init__(self, quantile: float, history: int) -> None:
        self.quantile = quantile
        self.seen: deque[float] = deque(maxlen=history)

    def factor(self, norms: Tensor, total: float, layout: Layout, positions: Sequence[int]) -> Factor:
        threshold = self.threshold()
        self.seen.append(total)
        return 1.0 if threshold is None else min(1.0, threshold / (total + TINY))

    def threshold(self) -> float | None:
        if len(self.seen) < self.enough:
            return None
        ordered = sorted(self.seen)
        return ordered[math.ceil(self.quantile * len(ordered)) - 1]

    def state_dict(self) -> dict[str, Any]:
        return {"seen": list(self.seen)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.seen.clear()
        self.seen.extend(state["seen"])

    def __repr__(self) -> str:
        return f"Clip.adaptive({self.quantile:g}, {self.seen.maxlen})"


def _positive(maker: str, name: str, given: float) -> None:
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < given < math.inf:
        raise TrainStepError(f"{maker}({name}={given!r}): expected a positive finite number")
