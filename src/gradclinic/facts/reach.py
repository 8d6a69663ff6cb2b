"""Which parameters an objective reaches, seen over a few steps."""

from __future__ import annotations

from gradclinic.facts.location import Location
from gradclinic.frozen import frozen


@frozen
class ParameterReach:
    """What one trainable parameter got, step after step."""

    name: str
    norms: tuple[float | None, ...]
    """The norm of its gradient at each step; None where it was not connected to the loss."""
    where: Location | None = None
    """The `forward` of the innermost module of the user's own that holds it."""

    @property
    def unreached(self) -> bool:
        return bool(self.norms) and all(norm is None for norm in self.norms)

    @property
    def always_zero(self) -> bool:
        return bool(self.norms) and not self.unreached and all(not norm for norm in self.norms)


@frozen
class InnerGradient:
    """A gradient taken inside the objective: a force, a penalty, a residual of an equation."""

    where: Location | None
    differentiable: bool
    """It was taken with `create_graph`, or its result carries a graph for another reason."""
    in_objective: bool
    """The loss changes with it, by itself and not through another pass of the model."""


@frozen
class GradientReach:
    parameters: tuple[ParameterReach, ...]
    inner: tuple[InnerGradient, ...] = ()
    detached: bool = False
    """The objective carries no graph at all."""

    @property
    def steps(self) -> int:
        return max((len(p.norms) for p in self.parameters), default=0)

    @property
    def reached(self) -> int:
        return sum(not p.unreached and not p.always_zero for p in self.parameters)
