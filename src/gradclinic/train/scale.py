"""The loss scale for float16, whose gradients would underflow without one."""

from __future__ import annotations

from typing import Any


class LossScale:
    """Grows after a long time without overflow, halves on one.

    torch's GradScaler looks for infinities on each rank by itself and unscales in a pass of its
    own. Here the global norm, equal on all ranks, decides, and unscaling is part of the one
    multiplication that also clips. The state has GradScaler's keys: either loads the other's.
    """

    growth = 2.0
    backoff = 0.5

    def __init__(self, initial: float = 65536.0, growth_interval: int = 2000) -> None:
        self.value = initial
        self.growth_interval = growth_interval
        self.updates_since_change = 0

    def overflowed(self) -> None:
        self.value *= self.backoff
        self.updates_since_change = 0

    def updated(self) -> None:
        self.updates_since_change += 1
        if self.updates_since_change >= self.growth_interval:
            self.value *= self.growth
            self.updates_since_change = 0

    def state_dict(self) -> dict[str, Any]:
        return {
            "scale": self.value,
            "growth_factor": self.growth,
            "backoff_factor": self.backoff,
            "growth_interval": self.growth_interval,
            "_growth_tracker": self.updates_since_change,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.value = float(state["scale"])
        self.growth = state["growth_factor"]
        self.backoff = state["backoff_factor"]
        self.growth_interval = state["growth_interval"]
        self.updates_since_change = state["_growth_tracker"]
