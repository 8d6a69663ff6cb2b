"""A call to a loss, and how what it was given came to be."""

from __future__ import annotations

from gradclinic.facts.location import Location
from gradclinic.frozen import frozen


@frozen
class Op:
    """One operation on the way to a value: `softmax`, `log_softmax`, `sigmoid`, `linear`, `relu`, …"""

    name: str
    where: Location | None = None
    dim: int | None = None
    """The axis it normalises over, counted from the front when the number of axes is known."""
    implicit_dim: bool = False
    """No axis was given, so torch chose one."""
    shape: tuple[int, ...] | None = None
    """Of its result, when the program ran."""


@frozen
class LossCall:
    """One call site of a loss. Facts that only a run knows are None when read from source."""

    loss: str
    """The functional name: `cross_entropy`, `nll_loss`, `binary_cross_entropy`, `mse_loss`, …"""
    where: Location
    made_by: tuple[Op, ...] = ()
    """The operations that made the input, last first, without those that only change the shape.
    Ends where the trail is lost; empty means nothing is known."""
    reduction: str | None = "mean"
    """None when it is not known."""
    trains: bool = True
    """Its value reaches a backward, as far as can be told; False under no_grad and in evaluation."""
    divided: bool = False
    """The value is divided, or otherwise normalised, before backward."""
    ignore_index: int | None = None
    """As passed by the user; None when it was left at its default."""
    input_shape: tuple[int, ...] | None = None
    target_shape: tuple[int, ...] | None = None
    target_is_float: bool | None = None
    target_range: tuple[float, float] | None = None
    """Smallest and largest class index given, over the calls looked at."""
    padding_share: float | None = None
    """Share of the target that is one constant filling the ends of rows; None when not looked at."""
    padding_value: int | str | None = None
    """In source it may be known by its name alone."""
    saturated_share: float | None = None
    """Largest share of input probabilities seen that are exactly 0 or 1, and wrong."""
    first_value: float | None = None
    value_of_zeros: float | None = None
    """What a prediction of zeros would have cost at the first call, for a loss of differences."""
    untrained: bool = False
    """It was first called before any update, by a model that nothing was loaded into."""
    calls: int = 1
    told_at: Location | None = None
    """Where it is told of instead: the end of a model whose file is read without that of the loss."""

    @property
    def last_op(self) -> Op | None:
        return self.made_by[0] if self.made_by else None


@frozen
class SoftmaxUse:
    """A softmax whose result is summed over another axis than the one it normalised."""

    softmax: Op
    used: Location


@frozen
class DomainEdge:
    """An operation on the way to the loss met a value where its derivative does not exist."""

    op: str
    where: Location
    value: str
    """The one that was met, or, read from source, what it is taken of."""
    met: bool = True
    """False when it was read from source: it is met as soon as the values get there."""
