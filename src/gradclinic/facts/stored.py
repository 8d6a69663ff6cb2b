"""What a data set does when it is read."""

from __future__ import annotations

from gradclinic.facts.location import Location
from gradclinic.frozen import frozen


@frozen
class Mutation:
    """Fetching a sample wrote into the stored data."""

    attribute: str
    """Where it is stored: `images`, `dataset.labels`."""
    index: int | None
    """The sample whose fetch did it; None when read from source: any."""
    where: Location | None = None


@frozen
class StoredData:
    """Samples that were fetched, the stored data compared before and after."""

    fetched: int | None
    """How many; None when read from source."""
    mutations: tuple[Mutation, ...] = ()
    seen: str = "the same sample, fetched again with the same random state, is another one"


@frozen
class SliceWritten:
    """A batch that is a view of stored data, changed in place before the model read it."""

    where: Location
    operation: str
    rows: int
    of: int
    steps: int
    """How many steps it was seen in."""


@frozen
class WorkerRandomness:
    """The same sample fetched first thing by two workers."""

    workers: int
    random: bool
    """The sample is random: one worker draws it differently each time."""
    shared: bool
    """Two workers drew the very same."""
    where: Location | None = None
    seen: str = "two workers returned one random sample bit for bit equal"


@frozen
class LabelAlignment:
    """Training on the pairs as they come, against training on labels dealt out anew."""

    start: float
    """The held-out loss before training."""
    real: float
    """The held-out loss after training on the pairs as they come."""
    shuffled: tuple[float, ...]
    """The same for each control."""
    memorised: float
    """The part of its loss on the real pairs that training could remove: it can learn at all."""
    where: Location | None = None

    @property
    def informative(self) -> bool:
        """The real pairs teach something that shuffled ones do not."""
        return self.real < min(self.shuffled)


@frozen
class ReorderedApart:
    """Inputs and labels that a source shuffles one after the other, each by a draw of its own."""

    inputs: str
    targets: str
    first: Location
    """Where the one that comes first is shuffled."""
    where: Location
    """Where the other is, and they part."""
