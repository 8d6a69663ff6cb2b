"""How the samples of one batch act together: in the outputs, and in the gradient."""

from __future__ import annotations

from gradclinic.facts.location import Location
from gradclinic.frozen import frozen


@frozen
class Independence:
    """Does one sample's output change with the other samples of its batch?"""

    samples: int
    change: float
    """The largest change seen in an output, relative to its size, when only the others changed."""
    mixer: str = ""
    """The first module whose output for the sample changed; "" is the model itself."""
    mixer_type: str = ""
    where: Location | None = None
    batch_first: bool | None = None
    """The mixer's own setting, where it has one."""
    batch_norm: tuple[str, ...] = ()
    """Layers that mix samples in training by design; their running statistics stood in for them."""
    unjudged: str = ""

    @property
    def mixed(self) -> bool:
        return self.change > 0


@frozen
class MovedSamples:
    """An operation of the model that takes another axis than theirs for that of the samples."""

    where: Location
    operation: str
    given: tuple[int, ...]
    """The shape of what it was given."""
    samples: int
    made: tuple[int, ...] | None = None
    """The shape it gave a tensor; None for a layer that reads the first axis as time."""


@frozen
class Accumulation:
    """The gradient of one batch against that of its parts, taken one after the other."""

    parts: int
    weights: tuple[float, ...]
    """What each part's gradient must be multiplied with to give the whole batch's."""
    used: tuple[float, ...]
    """What the loop multiplies them with."""
    bias: float
    """The error of the accumulated gradient, relative to the whole batch's."""
    cosine: float
    residual: float
    """What no weights can account for: the loss couples samples of different parts."""
    own_loop: bool = False
    """A loop of the user's was measured; otherwise each part's loss divided by their number."""
    batch_norm: tuple[str, ...] = ()
    where: Location | None = None

    @property
    def coupled(self) -> bool:
        return self.residual > TOLERANCE

    @property
    def matches(self) -> bool:
        return self.bias <= TOLERANCE

    @property
    def summed(self) -> bool:
        """The loss is a sum over samples: its parts add up as they are."""
        return _all_near(self.weights, 1.0)

    @property
    def even(self) -> bool:
        """Each part weighs the same, as their number says."""
        return _all_near(self.weights, 1.0 / self.parts)

    @property
    def scale(self) -> float:
        """The factor by which the loop's weights exceed the right ones, when it is one factor."""
        ratios = [used / right for used, right in zip(self.used, self.weights, strict=True) if right]
        if not ratios or max(ratios) - min(ratios) > 0.02 * max(ratios):
            return 0.0
        return sum(ratios) / len(ratios)


TOLERANCE = 1e-3


def _all_near(values: tuple[float, ...], wanted: float) -> bool:
    return all(abs(value - wanted) <= 0.01 * wanted for value in values)
