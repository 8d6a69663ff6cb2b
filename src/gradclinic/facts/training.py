"""What the numbers of a run were: one optimizer's updates, in order, free of torch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from math import isfinite
from statistics import median

from gradclinic.facts.location import Location
from gradclinic.facts.tape import Actor
from gradclinic.frozen import frozen

ABSENT = -1.0
"""In an array over tensors: this one had no gradient, or was not measured."""


@frozen
class TensorInfo:
    """One tensor the optimizer holds, as the user's model names it."""

    name: str
    shape: tuple[int, ...]
    role: str = ""
    """The class of the module it belongs to: `Linear`, `Embedding`."""

    @property
    def size(self) -> int:
        size = 1
        for extent in self.shape:
            size *= extent
        return size

    @property
    def is_matrix(self) -> bool:
        """Has a fan-in: what carries the signal, unlike biases and gains."""
        return len(self.shape) >= 2 and self.role != "Embedding"


@frozen
class Step:
    """One update. Gradients are without the loss scale, as the update used them."""

    index: int
    loss: float | None
    norm: float
    """Of all gradients together, before clipping; ABSENT if they were not measured at this update."""
    used: float
    """The same after clipping."""
    rates: tuple[float, ...]
    scale: float | None = None
    skipped: bool = False
    limit: float | None = None
    """The max_norm or value the gradients were clipped to."""
    gradients: Sequence[float] = ()
    """The norm of each tensor's gradient after clipping."""

    @property
    def measured(self) -> bool:
        """What its gradients were is known; of its loss and rates it always is."""
        return self.norm != ABSENT

    @property
    def clipped(self) -> bool:
        return self.limit is not None and self.norm > self.limit


@frozen
class Sample:
    """What is measured on some updates only; one number for each tensor."""

    index: int
    weights: Sequence[float]
    """Norms before the update."""
    updates: Sequence[float]
    """Norms of what the update changed."""
    largest: Sequence[float] = ()
    """The largest absolute gradient."""
    zeros: Sequence[float] = ()
    """The share of gradients that are exactly zero."""
    against: float | None = None
    """The cosine between the update and the negative gradient: below 0 the step climbs."""
    exponents: Sequence[float] = ()
    """Now and then, the histogram of each tensor's gradient by power of two, laid end to end."""


def padded(row: Sample, count: int) -> Sample:
    """As of a parameter group that was added later, before which its tensors were not held."""
    if len(row.weights) >= count:
        return row
    return replace(
        row,
        weights=_up_to(count, row.weights),
        updates=_up_to(count, row.updates),
        largest=_up_to(count, row.largest),
        zeros=_up_to(count, row.zeros),
    )


def padded_step(row: Step, count: int) -> Step:
    short = 0 < len(row.gradients) < count
    return replace(row, gradients=_up_to(count, row.gradients)) if short else row


def _up_to(count: int, values: Sequence[float]) -> Sequence[float]:
    return (*values, *[ABSENT] * (count - len(values))) if values else values


class NonFinite(StrEnum):
    LOSS = "loss"
    GRADIENT = "gradient"
    PARAMETER = "parameter"


@frozen
class Origin:
    """The operation that first made a value that is not a number."""

    operation: str
    where: Location | None = None
    because: str = ""
    certain: bool = True
    """False when the operation is the only one in the graph that could have done it."""
    overflow: bool = False
    """It was given values too large for it, rather than values outside its domain."""


@frozen
class Breakdown:
    """The first time something was not finite."""

    what: NonFinite
    index: int
    where: Location | None
    tensors: tuple[str, ...] = ()
    origin: Origin | None = None
    loss: float | None = None


@frozen
class ActivationSample:
    index: int
    dead: float
    """The share of units that are zero for every sample of the batch."""
    pinned: float
    """The share of values in the flat tails."""
    size: float
    """Root mean square."""


@frozen
class Activation:
    """One activation of the model, in the order they run forward."""

    kind: str
    ordinal: int
    where: Location | None
    hidden: bool
    """Weights follow it: it is not what the loss is taken of."""
    units: int
    samples: tuple[ActivationSample, ...]


@dataclass(frozen=True)
class Training:
    """Everything measured of one optimizer's work."""

    optimizer: Actor
    tensors: tuple[TensorInfo, ...]
    steps: tuple[Step, ...]
    """The first and the last ones, and of those between ever fewer as the run gets longer."""
    samples: tuple[Sample, ...] = ()
    taken: int = 0
    skipped: int = 0
    alone: bool = True
    """No other optimizer trains in this program: what it minimises is nobody else's game."""
    breakdown: Breakdown | None = None
    backward: Location | None = None
    """Where its loss is sent backward."""
    stepped: Location | None = None
    clip: Location | None = None
    value_clip: bool = False
    adaptive: bool = False
    """Divides by the gradient's own size, as Adam does: the scale of the gradient then matters little."""
    climbs: bool = False
    """Built to go up the gradient (`maximize=True`)."""
    sense: int = 0
    """1 for an objective that cannot be negative, -1 for the negative of one, 0 if unknown."""
    suspect: Origin | None = None
    """An operation whose slope was seen to be infinite."""
    activations: tuple[Activation, ...] = ()
    cut_short: bool = False
    """The script was ended after the number of updates the user asked to see; it would have gone on."""

    @cached_property
    def losses(self) -> tuple[tuple[int, float], ...]:
        """Finite losses with the update they belong to."""
        return tuple((s.index, s.loss) for s in self.steps if s.loss is not None and isfinite(s.loss))

    @cached_property
    def taken_steps(self) -> tuple[Step, ...]:
        """Those that updated the weights, with gradients that were measured."""
        return tuple(step for step in self.steps if step.measured and not step.skipped)

    @cached_property
    def matrices(self) -> tuple[int, ...]:
        """Positions of the tensors that carry the signal."""
        return tuple(i for i, tensor in enumerate(self.tensors) if tensor.is_matrix)

    def ratios(self, sample: Sample) -> list[float]:
        """How far each matrix moved, as a share of its size."""
        return [
            sample.updates[i] / sample.weights[i]
            for i in self.matrices
            if sample.updates[i] >= 0 and sample.weights[i] > 0
        ]

    @cached_property
    def typical_ratios(self) -> tuple[tuple[int, float], ...]:
        """The median over matrices of update to weight, at each measured update."""
        found = []
        for sample in self.samples:
            finite = [ratio for ratio in self.ratios(sample) if isfinite(ratio)]
            if finite:
                found.append((sample.index, median(finite)))
        return tuple(found)


_ADAPTIVE = ("adam", "rmsprop", "adagrad", "adadelta", "lion", "adafactor", "muon", "rprop", "lamb", "sign")


def is_adaptive(optimizer: str) -> bool:
    """Whether an optimizer of this class divides by the gradient's own size."""
    return any(word in optimizer.lower() for word in _ADAPTIVE)


def finite(values: Iterable[float]) -> Iterator[float]:
    return (value for value in values if isfinite(value))
