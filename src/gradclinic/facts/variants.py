"""One model run in several ways: how far gradients, predictions and metrics agree with eager."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from gradclinic.facts.location import Location
from gradclinic.frozen import frozen


class Reach(StrEnum):
    """What a parameter gets from one loss term."""

    NONE = "none"
    """Not connected."""
    ZERO = "zero"
    """Connected, and nothing beyond rounding arrives."""
    VALUE = "value"


@frozen
class Agreement:
    """A vector of numbers beside the one it should be."""

    error: float
    """The norm of the difference over the norm of the reference."""
    cosine: float
    ratio: float
    """Norm over norm of the reference."""

    def within(self, tolerance: float) -> bool:
        return self.error <= tolerance

    @property
    def only_scaled(self) -> bool:
        """Same direction to rounding, another length."""
        return self.cosine > 1 - 1e-9 or (self.cosine > 1 - 1e-6 and self.error > 1e-2)


@frozen
class ParameterGap:
    name: str
    reference: Reach
    variant: Reach
    norm: float
    """Of the reference's gradient."""
    error: float
    """The norm of the difference over the norm of the whole term's gradient."""

    @property
    def lost(self) -> bool:
        return self.reference is Reach.VALUE and self.variant is not Reach.VALUE


@dataclass(frozen=True)
class TermGap:
    """The gradient of one loss term in a variant and in eager, over all parameters."""

    term: str
    agreement: Agreement
    parameters: tuple[ParameterGap, ...]

    @property
    def lost(self) -> tuple[str, ...]:
        return tuple(p.name for p in self.parameters if p.lost)

    @property
    def reached(self) -> int:
        return sum(p.variant is Reach.VALUE for p in self.parameters)

    @property
    def reached_in_reference(self) -> int:
        return sum(p.reference is Reach.VALUE for p in self.parameters)

    def differing(self, tolerance: float) -> tuple[str, ...]:
        """Parameters whose gradient is not the reference's, in the order of the model."""
        return tuple(p.name for p in self.parameters if p.lost or p.error > tolerance)


@frozen
class ValueGap:
    """A prediction, a loss term or a metric in a variant and in eager."""

    kind: str
    """`output`, `loss` or `metric`."""
    name: str
    agreement: Agreement
    size: int = 1
    """How many numbers it is."""
    meaning: str = ""
    """What a constant factor between the two is equal to: `6, the size of dimension 0 of force`."""

    @property
    def only_scaled(self) -> bool:
        """Off by one factor throughout; of a single number that says something if the factor does."""
        return self.agreement.only_scaled and (self.size > 1 or bool(self.meaning))


class TrialKind(StrEnum):
    """One thing is changed in how the variant is made; does the fault go away?"""

    NO_BACKEND = "without torch.compile"
    BACKEND = "another backend"
    SAVED_TENSORS = "saved tensors reconnected"
    TRAIN_MODE = "train mode while tracing"
    ENTRY = "inputs require grad where they enter"
    CONSTANTS = "this model's own constants in the graph"
    SLICE = "a slice in place of the scatter-sum"


@frozen
class Trial:
    kind: TrialKind
    what: str
    cured: bool
    """The fault went away; for SLICE: the change reproduces it."""
    detail: str = ""
    error: str = ""
    where: Location | None = None


@dataclass(frozen=True)
class VariantReport:
    name: str
    own: bool
    """Made by the user's function; otherwise one of gradclinic's."""
    backend: str = ""
    where: Location | None = None
    """Where the user traces, compiles or makes it."""
    error: str = ""
    """Why it could not be run, if so."""
    terms: tuple[TermGap, ...] = ()
    values: tuple[ValueGap, ...] = ()
    trials: tuple[Trial, ...] = ()
    notes: tuple[str, ...] = ()

    def agrees(self, tolerance: float) -> bool:
        return not self.error and not self.wrong_terms(tolerance) and not self.wrong_values(tolerance)

    def wrong_terms(self, tolerance: float) -> tuple[TermGap, ...]:
        return tuple(t for t in self.terms if t.lost or not t.agreement.within(tolerance))

    def wrong_values(self, tolerance: float) -> tuple[ValueGap, ...]:
        return tuple(v for v in self.values if not v.agreement.within(tolerance))

    def worst(self) -> float:
        return max(
            [gap.agreement.error for gap in self.terms] + [gap.agreement.error for gap in self.values],
            default=math.nan,
        )

    def trial(self, kind: TrialKind) -> Trial | None:
        """The first trial of this kind that cured the fault."""
        return next((trial for trial in self.trials if trial.kind is kind and trial.cured), None)


@dataclass(frozen=True)
class CompileReport:
    case: str
    dtype: str
    tolerance: float
    """Relative errors up to this one are rounding."""
    variants: tuple[VariantReport, ...]
    made_up: tuple[str, ...] = ()
    """Labels that were missing and filled with noise: the flow is right, the values mean nothing."""
    notes: tuple[str, ...] = ()

    @property
    def agrees(self) -> bool:
        return all(variant.agrees(self.tolerance) for variant in self.variants)

    def wrong(self) -> tuple[VariantReport, ...]:
        return tuple(variant for variant in self.variants if not variant.agrees(self.tolerance))
