"""Which learning rate suits this model, loss and optimizer?

Sweeps the rate from 1e-6 to 10, a constant factor per step, and stops when the loss has diverged.
Then a few short trials at constant rates around the steepest descent decide: a sweep alone
flatters high rates, because momentum has no time to build up in it. At most 98 updates in all, unless
the case's own rate lies where the loss diverges, which is then tried too.
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gradclinic.case import Case
from gradclinic.errors import UsageError
from gradclinic.facts.fitting import RatePoint, RateRange
from gradclinic.probes._budget import Budget
from gradclinic.probes._picture import RateCurve, page, sketch
from gradclinic.probes._restore import undisturbed
from gradclinic.probes._trainee import Trainee, loss_of
from gradclinic.probes.outcome import Outcome

FACTS = (RateRange,)
"""What this experiment finds out."""

LOWEST, HIGHEST = 1e-6, 10.0
SWEEP_STEPS = 38
TRIAL_STEPS = 15
MOST_TRIALS = 4
KEPT = 4
"""Batches of a loader that are kept for measuring: one alone would make the choice a matter of luck."""
HALF_DECADE = 10**0.5
GAIN_WITH_MOMENTUM, GAIN_WITHOUT = 0.5, 0.85
"""The part of the best trial's gain to settle for. With momentum the first steps promise more at high
rates than later ones keep, once velocity has built up; without, they tell the truth."""


def probe_lr(case: Case, *, seconds: float = 60.0) -> RateCurve:
    """Which learning rate suits the case; the result shows its curve in a notebook."""
    found = rate_range(case, Budget(seconds))
    return RateCurve(found, conclusion(found))


def rate_range(case: Case, budget: Budget | None = None) -> RateRange:
    budget = budget or Budget()
    with undisturbed(case):
        own = Trainee(case)
        if own.rate <= 0:
            raise UsageError("the optimizer's learning rate is 0; give one that can be scaled")
    sweep = _Runner(case, budget.share(0.6), "sweep")
    first, points = sweep.run(_sweep_rates(), stop_above=True)
    steepest, diverges = _steepest(first, points), _diverges(first, points)
    trials: list[RatePoint] = []
    steps = sweep.steps
    rate = steepest
    while rate is not None and len(trials) < MOST_TRIALS and not budget.spent:
        runner = _Runner(case, budget, f"trial at {rate:.2g}")
        trials = sorted([*trials, runner.trial(rate)], key=lambda trial: trial.rate)
        steps += runner.steps
        rate = _next_rate(first, trials, own, diverges)
    suggestion, reason = _suggest(first, trials, own, diverges)
    theirs = RatePoint(own.rate, math.nan)
    if diverges is not None and own.rate >= diverges:
        runner = _Runner(case, budget, "trial at the case's own rate")
        theirs = runner.trial(own.rate)
        steps += runner.steps
    kind = type(own.optimizer).__name__
    return RateRange(
        first, tuple(points), tuple(trials), theirs, kind, steepest, diverges, suggestion, reason, steps
    )


class _Runner:
    """Updates at given rates from the case's own start, the loss measured on batches kept for that."""

    def __init__(self, case: Case, budget: Budget, what: str) -> None:
        self.case, self.budget, self.what = case, budget, what
        self.steps = 0

    def run(self, rates: list[float], stop_above: bool = False) -> tuple[float, list[RatePoint]]:
        points: list[RatePoint] = []
        with undisturbed(self.case):
            self.case.model.train()
            trainee = Trainee(self.case)
            batches = _endless(self.case)
            kept = list(itertools.islice(batches, KEPT if self.case.loader is not None else 1))
            first = lowest = self._loss(kept)
            for step in self.budget.steps(self.what, len(rates)):
                trainee.scale_rates(rates[step] / trainee.rate)
                stepped_on = trainee.step(next(batches))
                self.steps += 1
                loss = self._loss(kept) if math.isfinite(stepped_on) else math.inf
                points.append(RatePoint(rates[step], loss))
                lowest = min(lowest, loss)
                if not math.isfinite(loss) or (stop_above and loss > first + _tolerated(first, lowest)):
                    break
        return first, points

    def trial(self, rate: float) -> RatePoint:
        _, points = self.run([rate] * TRIAL_STEPS)
        return RatePoint(rate, points[-1].loss if points else math.inf)

    def _loss(self, kept: list[Any]) -> float:
        return sum(loss_of(self.case, batch) for batch in kept) / len(kept)


def _endless(case: Case) -> Iterator[Any]:
    """The loader's batches over and over; the first are kept for measuring."""
    return itertools.chain.from_iterable(case.batches() for _ in itertools.count())


def _sweep_rates() -> list[float]:
    factor = (HIGHEST / LOWEST) ** (1 / (SWEEP_STEPS - 1))
    return [LOWEST * factor**step for step in range(SWEEP_STEPS)]


def _tolerated(first: float, lowest: float) -> float:
    """How far above its start the loss may go before the sweep is over."""
    return 2 * max(first - lowest, 0.5 * abs(first), 1e-6)


def _steepest(first: float, points: list[RatePoint]) -> float | None:
    """Where the loss falls fastest over three steps, before its lowest point."""
    losses = [first] + [point.loss for point in points]
    lowest = min(range(len(losses)), key=losses.__getitem__)
    if lowest == 0 or first - losses[lowest] < 1e-4 * max(abs(first), 1e-6):
        return None
    falls = {index: losses[index + 1] - losses[index - 1] for index in range(1, lowest)}
    at = min(falls, key=falls.__getitem__) if falls else lowest
    return points[at - 1].rate


def _diverges(first: float, points: list[RatePoint]) -> float | None:
    above = None
    for point in points:
        above = (above or point.rate) if point.loss > first else None
    # Rising at the very start is the noise of one batch, not divergence.
    return above if above is not None and above > points[0].rate else None


def _momentum(trainee: Trainee) -> bool:
    group = trainee.optimizer.param_groups[0]
    betas = group.get("betas") or (0.0,)
    return bool(group.get("momentum") or float(betas[0]) > 0)


def _settle_for(trainee: Trainee) -> float:
    return GAIN_WITH_MOMENTUM if _momentum(trainee) else GAIN_WITHOUT


def _next_rate(first: float, trials: list[RatePoint], own: Trainee, diverges: float | None) -> float | None:
    """Up while the highest rate is clearly the best, down while the lowest gains more than is settled for."""
    gains = [first - trial.loss for trial in trials]
    lower, upper = trials[0].rate / HALF_DECADE, trials[-1].rate * HALF_DECADE
    others = max(gains[:-1], default=gains[-1])
    if gains[-1] > 1.3 * max(others, 0.0) and upper < (diverges or math.inf) and len(trials) > 1:
        return upper
    return lower if max(gains) <= 0 or gains[0] > _settle_for(own) * max(gains) else None


def _suggest(
    first: float, trials: list[RatePoint], own: Trainee, diverges: float | None
) -> tuple[float | None, str]:
    gains = [first - trial.loss for trial in trials]
    if not trials or max(gains) <= 0:
        return None, "the loss fell at no rate: it is not the rate that keeps this model from learning"
    wanted = _settle_for(own) * max(gains)
    best = trials[gains.index(max(gains))]
    index = next(i for i, gain in enumerate(gains) if gain >= wanted)
    rate = trials[index].rate
    if index > 0:
        # Between two trials, on a straight line over the logarithm of the rate.
        part = (wanted - max(gains[index - 1], 0.0)) / (gains[index] - max(gains[index - 1], 0.0))
        rate = trials[index - 1].rate * (rate / trials[index - 1].rate) ** part
    why = f"{wanted / max(gains):.0%} of the gain of the best trial ({best.rate:.2g}), at a lower rate"
    if _momentum(own):
        why += ", since momentum makes first steps look too good"
    if diverges is not None and rate > diverges / 2:
        return diverges / 10, f"a decade under the divergence at {diverges:.2g}"
    return rate, why


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--html", metavar="FILE", help="write the curve as a page to FILE")


def run(case: Case, args: argparse.Namespace, budget: Budget) -> Outcome:
    found = rate_range(case, budget)
    if args.html:
        try:
            Path(args.html).write_text(page(found, case.name or args.target), encoding="utf-8")
        except OSError as error:
            raise UsageError(f"cannot write the picture to {args.html}: {error.strerror}") from error
    return Outcome((found,), conclusion(found), picture=sketch(found), steps=found.steps)


def conclusion(found: RateRange) -> str:
    if found.suggestion is None:
        return f"lr: no suggestion: {found.reason} ({found.steps} steps)"
    seen = [f"steepest descent at {found.steepest:.2g}"] if found.steepest else []
    if found.diverges:
        seen.append(f"divergence from {found.diverges:.2g}, a decade under it {found.diverges / 10:.2g}")
    return f"lr: train with {found.suggestion:.2g}: {found.reason}; {'; '.join(seen)} ({found.steps} steps)"
