"""Which parameters each term of an objective reaches, and how much of the gradient is whose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gradclinic.facts.location import Location
from gradclinic.facts.variants import Reach
from gradclinic.frozen import frozen
from gradclinic.markup import rendered

MOST_ROWS = 500
"""Of parameters in a notebook; more than that nobody reads and a browser labours at."""


@dataclass(frozen=True)
class TermFlow:
    """One term, weighted as in the objective."""

    name: str
    value: float | None
    """Of the unweighted term; unknown for a term that was found in the sum."""
    reach: Mapping[str, Reach]
    norms: Mapping[str, float]
    norm: float
    """Of its gradient over all parameters."""
    where: Location | None = None

    @property
    def reached(self) -> int:
        return sum(reach is Reach.VALUE for reach in self.reach.values())


@frozen
class Conflict:
    """Two terms that pull in different directions."""

    first: str
    second: str
    cosine: float


@dataclass(frozen=True)
class GradientFlow:
    case: str
    parameters: tuple[str, ...]
    terms: tuple[TermFlow, ...]
    cosines: tuple[Conflict, ...] = ()
    """For every pair of terms that both reach something."""
    found: bool = False
    """The terms were found in the objective's sum, not named by the case."""
    made_up: tuple[str, ...] = ()
    """Labels that were missing and filled with noise: the flow is right, the norms mean nothing."""
    places: Mapping[str, Location | None] = field(default_factory=dict)
    """The `forward` of the user's module that holds each parameter."""

    @property
    def unreached(self) -> tuple[str, ...]:
        """Parameters that no term is connected to."""
        return tuple(
            name for name in self.parameters if all(term.reach[name] is Reach.NONE for term in self.terms)
        )

    def share(self, term: TermFlow) -> float:
        """The part of the terms' summed gradient norms that is this term's."""
        whole = sum(each.norm for each in self.terms)
        return term.norm / whole if whole else 0.0

    @property
    def conflicts(self) -> tuple[Conflict, ...]:
        return tuple(pair for pair in self.cosines if pair.cosine < -0.1)

    def _repr_html_(self) -> str:
        return rendered("flow.html", flow=self, longest=MOST_ROWS)
