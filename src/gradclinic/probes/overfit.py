"""Can the model learn one batch by heart?

Trains on the case's one batch, with dropout, weight decay and every source of randomness held
still, until the loss is near its floor. When that fails, other rates are tried and the model is
examined, so that the answer is a cause: a parameter out of reach, mixed samples, a wrong rate.
"""

from __future__ import annotations

import argparse
import math

from gradclinic.case import Case
from gradclinic.facts import Location
from gradclinic.facts.fitting import Attempt, Fit, Overfit
from gradclinic.facts.levels import InitialLoss
from gradclinic.facts.reach import GradientReach
from gradclinic.probes._budget import Budget
from gradclinic.probes._losses import floor_of
from gradclinic.probes._reach import reach
from gradclinic.probes._restore import modules_of, random_state, undisturbed
from gradclinic.probes._trainee import Trainee, loss_of, quiet_dropout
from gradclinic.probes.batch import independence
from gradclinic.probes.init import initial_loss
from gradclinic.probes.outcome import Outcome

FACTS = (GradientReach, Overfit)
"""What this experiment finds out."""

STEPS = 400
NEAR_FLOOR = 0.02
"""Training ends early with this part of the first loss left: more would prove nothing new."""
FACTORS = (10.0, 0.1, 100.0, 0.01, 1000.0)
"""What the case's own rate is multiplied with, in this order, when it does not do."""


def overfit(case: Case, budget: Budget | None = None, steps: int = STEPS) -> Overfit:
    budget = budget or Budget()
    level = initial_loss(case)
    floor = floor_of(level.total, list(level.levels)) if _by_itself(case) else None
    own = _attempt(case, budget.share(0.4), steps, floor, 1.0)
    retries: list[Attempt] = []
    if own.fit in (Fit.STUCK, Fit.DIVERGES):
        for factor in FACTORS:
            if budget.spent:
                break
            retries.append(_attempt(case, budget.share(0.4), steps, floor, factor))
            if retries[-1].fit is Fit.FITS:
                break
    return Overfit(own, tuple(retries), _where(level))


def _by_itself(case: Case) -> bool:
    """The loss is that of the model alone: what a critic in between allows is not known."""
    others = [module for module in modules_of(case) if module is not case.model]
    return not any(True for module in others for _ in module.parameters())


def _attempt(case: Case, budget: Budget, steps: int, floor: float | None, factor: float) -> Attempt:
    with undisturbed(case), random_state() as rewind:
        quiet_dropout(case.model)
        trainee = Trainee(case).without_decay()
        trainee.scale_rates(factor)
        losses: list[float] = []
        for _ in budget.steps(f"fitting one batch at rate {trainee.rate:.2g}", steps):
            # The same draws every step: noise, augmentation and dropout inside the model stand still.
            rewind()
            losses.append(trainee.step())
            if not math.isfinite(losses[-1]) or _near_floor(losses, floor):
                break
        rewind()
        losses.append(loss_of(case))
    finite = [loss for loss in losses if math.isfinite(loss)]
    return Attempt(
        optimizer=type(trainee.optimizer).__name__,
        rate=trainee.rate,
        steps=len(losses) - 1,
        first=losses[0],
        last=losses[-1],
        lowest=min(finite, default=math.nan),
        floor=floor,
        finite=math.isfinite(losses[-1]),
    )


def _near_floor(losses: list[float], floor: float | None) -> bool:
    least = floor or 0.0
    return least <= losses[-1] <= least + NEAR_FLOOR * (losses[0] - least)


def _where(level: InitialLoss) -> Location | None:
    return level.levels[0].where if level.levels else None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--steps", type=int, default=STEPS, metavar="N", help=f"at most (default: {STEPS})")


def run(case: Case, args: argparse.Namespace, budget: Budget) -> Outcome:
    facts: list[object] = [reach(case)]
    try:
        found = overfit(case, budget, args.steps)
    except RuntimeError:
        if any(not inner.differentiable for inner in facts[0].inner):  # type: ignore[attr-defined]
            return Outcome(tuple(facts), "overfit: the objective cannot be differentiated")
        raise
    facts.append(found)
    if found.own.fit not in (Fit.FITS, Fit.SLOW, Fit.UNBOUNDED):
        # It failed: ask the other questions, so that the answer is a cause.
        facts += [initial_loss(case), independence(case)]
    steps = found.own.steps + sum(attempt.steps for attempt in found.retries)
    return Outcome(tuple(facts), conclusion(found), steps=steps)


def conclusion(found: Overfit) -> str:
    own = found.own
    numbers = (
        f"loss {own.first:.4g} to {own.last:.4g} in {own.steps} steps of {own.optimizer} at {own.rate:.2g}"
    )
    floor = "" if own.floor is None else f", its least value is {own.floor:.3g}"
    told = {
        Fit.FITS: "the model learns one batch by heart",
        Fit.SLOW: "the model learns one batch, slowly",
        Fit.STUCK: "the model does not learn one batch",
        Fit.DIVERGES: "the loss diverges on one batch",
        Fit.UNBOUNDED: "the loss falls below zero without a known floor, so fitting cannot be judged",
    }
    line = f"overfit: {told[own.fit]}: {numbers}{floor}"
    if found.rescue is not None:
        line += f"; at {found.rescue.rate:.2g} it learns it in {found.rescue.steps} steps"
    return line
