"""Whether training can be repeated: after a reload, and from the same seed."""

from __future__ import annotations

from gradclinic.facts.location import Location
from gradclinic.frozen import frozen


@frozen
class Resume:
    """Training straight through against training that was saved, loaded and went on."""

    steps: int
    """Before the checkpoint, and again after it."""
    differs_at: int | None
    """The first step after the checkpoint whose weights differ; None when all agree bit for bit."""
    distance: float
    """The largest difference of a weight at the end."""
    not_restored: tuple[str, ...] = ()
    """What was different right after loading, in words: `Adam's exp_avg`, `numpy's random state`."""
    fresh_process: bool = True
    where: Location | None = None
    """The function that saves."""

    @property
    def exact(self) -> bool:
        return self.differs_at is None


@frozen
class Repeat:
    """Two runs from one seed, compared bit by bit."""

    steps: int
    step: int | None
    """The first step at which they differ; -1 is before the first; None when they never do."""
    what: str = ""
    """What differed first there: `the batch`, `the output of encoder`, `the gradient of head.weight`."""
    distance: float = 0.0
    where: Location | None = None

    @property
    def same(self) -> bool:
        return self.step is None
