"""Numbers to set, read off the run itself."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from statistics import quantiles

from gradclinic.facts.training import Training

USUAL_RATIO = 1e-3
"""Update to weight of a run that neither crawls nor jumps."""


@dataclass(frozen=True, slots=True)
class MaxNorm:
    value: float
    """Nine updates of ten lie below it."""
    spread: str


def max_norm(training: Training) -> MaxNorm:
    norms = [step.norm for step in training.taken_steps if isfinite(step.norm)]
    if len(norms) < 2:
        return MaxNorm(norms[0] if norms else 1.0, "too few updates")
    tenths = quantiles(norms, n=10, method="inclusive")
    return MaxNorm(tenths[8], f"{tenths[0]:.3g} to {tenths[8]:.3g}, median {tenths[4]:.3g}")


def learning_rate(rate: float, ratio: float) -> str:
    """The rate at which updates would have their usual size, to one digit."""
    return f"{rate * USUAL_RATIO / ratio:.0e}"
