"""What one update was, for logs and monitors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from torch import Tensor


@dataclass(frozen=True)
class Update:
    """Returned by `step(loss)` when a window is complete. Reading it costs no further pass."""

    number: int
    """Updates applied so far, this one included."""
    applied: bool
    skipped: str
    """Why it was not applied; empty when it was."""
    norm: float
    """The global gradient norm, unscaled and before clipping."""
    clipped: bool
    learning_rates: tuple[float, ...]
    """Of each parameter group, as used by this update."""
    loss_scale: float
    term_norms: Mapping[str, float]
    """The gradient norm of each named loss term, on the updates where it was asked for."""
    nonfinite: tuple[str, ...]
    """Parameters whose gradient was NaN or infinite."""
    _parts: tuple[tuple[float | Tensor, float], ...] = field(repr=False)
    _weight: float = field(repr=False)
    _names: Sequence[str] = field(repr=False)
    _positions: Sequence[int] = field(repr=False)
    _norms: Tensor = field(repr=False)

    @cached_property
    def loss(self) -> float:
        """The mean loss of the window, over all ranks."""
        if not self._weight:
            return math.nan
        return sum(float(loss) * times for loss, times in self._parts if times) / self._weight

    @cached_property
    def norms(self) -> dict[str, float]:
        """The gradient norm of every parameter that had one, unscaled and before clipping."""
        names = (self._names[position] for position in self._positions)
        return dict(zip(names, self._norms.tolist(), strict=True))
