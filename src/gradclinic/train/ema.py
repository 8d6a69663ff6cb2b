"""An average of the weights, in memory of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from gradclinic.train.errors import TrainStepError
from gradclinic.train.layout import unwrapped


class EMA:
    """`average = decay * average + (1 - decay) * weights`, once per applied update.

    Made by `TrainStep(ema=0.999)`. Buffers (running statistics) are copied, not averaged.
    Evaluate inside `with step.ema.applied():`.
    """

    def __init__(self, models: Sequence[nn.Module], decay: float) -> None:
        if not 0 < decay < 1:
            raise TrainStepError(f"TrainStep(ema={decay!r}): expected a decay in (0, 1), such as 0.999")
        self.decay = decay
        plain = [unwrapped(model) for model in models]
        self._weights: list[Tensor] = [parameter for model in plain for parameter in model.parameters()]
        self._buffers: list[Tensor] = [buffer for model in plain for buffer in model.buffers()]
        with torch.no_grad():
            self._average = [weight.detach().clone() for weight in self._weights]
            self._latest = [buffer.detach().clone() for buffer in self._buffers]

    @torch.no_grad()
    def update(self) -> None:
        torch._foreach_lerp_(self._average, self._weights, 1 - self.decay)
        for kept, buffer in zip(self._latest, self._buffers, strict=True):
            kept.copy_(buffer)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """The models hold the average inside, and their own weights again after."""
        self._exchange()
        try:
            yield
        finally:
            self._exchange()

    @torch.no_grad()
    def _exchange(self) -> None:
        for kept, live in zip([*self._average, *self._latest], [*self._weights, *self._buffers], strict=True):
            held = kept.clone()
            kept.copy_(live)
            live.copy_(held)

    def state_dict(self) -> dict[str, Any]:
        return {"average": list(self._average), "latest": list(self._latest)}

    @torch.no_grad()
    def load_state_dict(self, state: dict[str, Any]) -> None:
        for kept, saved in zip(self._average, state["average"], strict=True):
            kept.copy_(saved)
        for kept, saved in zip(self._latest, state["latest"], strict=True):
            kept.copy_(saved)
