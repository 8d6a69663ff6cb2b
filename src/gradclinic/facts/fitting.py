"""What came of training on purpose: on one batch, and over a range of rates."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from gradclinic.facts.location import Location

FITTED = 0.1
"""A batch counts as fitted when a tenth of the first loss above its floor is left."""
MOVED = 0.5
"""Less than half of it left is learning, if slowly."""


class Fit(StrEnum):
    FITS = "fits"
    SLOW = "slow"
    """It learns, and the steps did not suffice."""
    STUCK = "stuck"
    DIVERGES = "diverges"
    UNBOUNDED = "unbounded"
    """The objective fell below zero and kept falling: no floor tells when it has fitted."""


@dataclass(frozen=True)
class Attempt:
    """One try at fitting one batch."""

    optimizer: str
    rate: float
    steps: int
    first: float
    last: float
    lowest: float
    floor: float | None
    """The least the loss can be; None when it is not known."""
    finite: bool = True

    @property
    def left(self) -> float:
        """The part of the first loss, above its floor, that is left."""
        floor = self.floor or 0.0
        return (self.last - floor) / max(self.first - floor, 1e-12)

    @property
    def fit(self) -> Fit:
        if not self.finite or self.last > 2 * abs(self.first) + 1e-6:
            return Fit.DIVERGES
        if self.floor is None and self.lowest < 0:
            return Fit.UNBOUNDED if self.lowest < self.first else Fit.STUCK
        if self.left <= FITTED:
            return Fit.FITS
        # Without a known floor the loss may be as low as it can be: only one that stands still is stuck.
        moved = MOVED if self.floor is not None else 0.95
        return Fit.SLOW if self.left <= moved else Fit.STUCK


@dataclass(frozen=True)
class Overfit:
    """Can the model learn one batch by heart?"""

    own: Attempt
    """With the case's own optimizer."""
    retries: tuple[Attempt, ...] = ()
    """With other rates, when its own did not do."""
    where: Location | None = None
    """The loss."""

    @property
    def rescue(self) -> Attempt | None:
        """The first retry that fits, or else that learns at all."""
        ranked = sorted(self.retries, key=lambda attempt: attempt.fit is not Fit.FITS)
        return next((attempt for attempt in ranked if attempt.fit in (Fit.FITS, Fit.SLOW)), None)


@dataclass(frozen=True)
class RatePoint:
    rate: float
    loss: float


@dataclass(frozen=True)
class RateRange:
    """The loss while the learning rate grows by a constant factor each step, and short trials after it."""

    first: float
    """The loss before any step."""
    points: tuple[RatePoint, ...]
    """After each step of the sweep, on one batch that was kept for it."""
    trials: tuple[RatePoint, ...]
    """After a few steps at one constant rate each, from the start."""
    own: RatePoint
    """The rate the case trains with; its loss is NaN when it was in no need of a trial."""
    optimizer: str
    steepest: float | None
    """The rate at which the loss fell fastest."""
    diverges: float | None
    """The rate at which the loss rose above its start for good; None when it never did."""
    suggestion: float | None
    reason: str
    steps: int
    """Updates made in all."""

    @property
    def best(self) -> float:
        """The lowest loss of a trial."""
        return min((trial.loss for trial in self.trials), default=self.first)
