"""Norms that explode and losses that jump: what several rules ask about one run."""

from __future__ import annotations

from dataclasses import dataclass
from math import hypot, inf, isfinite
from statistics import median

from gradclinic.facts.training import Breakdown, Step, Training
from gradclinic.rules.health._progress import Verdict, progress

_GROWN = 1e4
_LOSS_GROWN = 100.0
_GROWN_UNTIL_BROKEN = 100.0
_STEEP = 1e6
_BEFORE = 20
"""Updates a jump is compared with."""


@dataclass(frozen=True, slots=True)
class Explosion:
    step: Step
    before: float
    """The norm of the first updates."""
    grown: bool
    """False when the gradients were that large from the start."""


def explosion(training: Training) -> Explosion | None:
    """Gradients that grew by orders of magnitude, or are that steep from the start, in a run that fails.

    A large norm alone is no fault: summed losses and residuals of differential equations have it.
    """
    steps = [step for step in training.taken_steps if isfinite(step.norm) and step.norm > 0]
    if _an_operation_broke(training.breakdown):
        return None
    if training.breakdown is not None and _overflows_at_once(training):
        return Explosion(training.taken_steps[0], inf, False)
    if len(steps) < 2:
        return None
    usual = median(step.norm for step in steps[:5])
    peak = max(steps, key=lambda step: step.norm)
    growth = peak.norm / usual
    if training.breakdown is not None:
        if growth >= _GROWN_UNTIL_BROKEN or _grows_to_the_end(steps):
            return Explosion(peak, steps[0].norm, True)
    elif growth >= _GROWN and _loss_growth(training) >= _LOSS_GROWN:
        return Explosion(peak, usual, True)
    if training.breakdown is not None or progress(training).verdict in (Verdict.FLAT, Verdict.WORSE):
        steepness = _steepness(training)
        if steepness is not None and steepness >= _STEEP:
            return Explosion(steps[0], usual, False)
    return None


def _an_operation_broke(breakdown: Breakdown | None) -> bool:
    """A logarithm of zero has steep gradients around it too, but it is not they that grew."""
    origin = breakdown.origin if breakdown is not None else None
    return origin is not None and origin.certain and not origin.overflow


def _overflows_at_once(training: Training) -> bool:
    """The first loss is a number, and its gradient too large for one."""
    first = training.taken_steps[0] if training.taken_steps else None
    return first is not None and first.norm == inf and first.loss is not None and isfinite(first.loss)


def _grows_to_the_end(steps: list[Step]) -> bool:
    """Too few updates for a median: the last finite norm is far above the first."""
    return len(steps) < 10 and steps[-1].norm > _GROWN_UNTIL_BROKEN * steps[0].norm


def _loss_growth(training: Training) -> float:
    losses = [abs(loss) for _, loss in training.losses]
    if len(losses) < 5:
        return 0.0
    first = median(losses[:3])
    return median(losses[-3:]) / first if first else inf


def _steepness(training: Training) -> float | None:
    """How many times the loss its own size would change if the weights moved by theirs, at first.

    It does not depend on the unit of the loss or of the weights.
    """
    found = []
    steps = {step.index: step for step in training.taken_steps[:5]}
    for sample in training.samples:
        step = steps.get(sample.index)
        if step is None or not step.loss or not isfinite(step.loss) or not isfinite(step.norm):
            continue
        weight = hypot(*(value for value in sample.weights if value > 0))
        found.append(step.norm * weight / abs(step.loss))
    return median(found) if found else None


@dataclass(frozen=True, slots=True)
class Spike:
    step: Step
    loss: float
    usual_loss: float
    usual_norm: float
    recovered: bool


def spike(training: Training) -> Spike | None:
    """The first jump of the loss, with its gradient, far out of the recent spread."""
    steps = [
        (step, step.loss)
        for step in training.taken_steps
        if step.loss is not None and isfinite(step.loss) and isfinite(step.norm)
    ]
    if len(steps) < _BEFORE + 5:
        return None
    first = median(loss for _, loss in steps[:3])
    for position in range(_BEFORE, len(steps)):
        step, loss = steps[position]
        before = steps[position - _BEFORE : position]
        usual = median(value for _, value in before)
        if usual <= 0 or first <= 0 or loss < max(10 * usual, first):
            continue
        spread = median(abs(value - usual) for _, value in before)
        norm = median(one.norm for one, _ in before)
        if loss - usual < 20 * spread or step.norm < 10 * norm:
            continue
        after = [value for _, value in steps[position + 1 :]]
        recovered = len(after) < 10 or min(after) < 2 * usual or loss < 10 * first
        return Spike(step, loss, usual, norm, recovered)
    return None
