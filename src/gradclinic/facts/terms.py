"""The terms of an objective, found in its sum while a program trains."""

from __future__ import annotations

from collections.abc import Mapping

from gradclinic.facts.flow import Conflict
from gradclinic.facts.location import Location
from gradclinic.frozen import frozen


@frozen
class LossTerm:
    """One summand, weighted as in the objective."""

    name: str
    """As it is written in the sum."""
    where: Location | None
    norm: float
    """Of its gradient over all parameters; not finite where the gradient is not."""
    norms: Mapping[str, float]
    """The same for each module that it reaches."""


@frozen
class LossTerms:
    """The objective that one call of backward is given, taken apart."""

    backward: Location
    terms: tuple[LossTerm, ...]
    cosines: tuple[Conflict, ...] = ()
    """Between the gradients of every two terms that reach something in common."""
