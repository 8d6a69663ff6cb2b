"""Did the loss get anywhere? Asked by every rule that must not alarm on a run that learns."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from math import sqrt
from statistics import fmean, median

from gradclinic.facts.training import Training

FEWEST = 20
"""Updates below which nothing is said about a trend."""
_SURE = 3.0
"""Standard errors between the beginning and the end that are not taken for noise."""
_MOVED = 0.03
_STILL = 0.01
_ONCE = 0.1
_WANDERED = 1.5
"""Times what two fifths of a run may differ by chance: there are ten pairs of them."""
_BLIND = 0.1
"""Progress smaller than this share of the loss must not hide in the noise, or nothing is said."""


class Verdict(StrEnum):
    LEARNING = "learning"
    FLAT = "flat"
    WORSE = "worse"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Progress:
    verdict: Verdict
    first: float = 0.0
    last: float = 0.0
    noise: float = 0.0
    """The spread between neighbouring updates."""
    updates: int = 0

    @property
    def story(self) -> str:
        return f"{self.first:.4g} at first, {self.last:.4g} at the end of {self.updates} updates"


def progress(training: Training) -> Progress:
    losses = [loss for _, loss in training.losses]
    count = len(losses)
    if count < FEWEST:
        return Progress(Verdict.UNKNOWN, updates=count)
    first = min(losses[0], median(losses[:3]))
    last = median(losses[-max(3, count // 5) :])
    noise = _noise(losses)
    return Progress(_verdict(losses, first, last, noise), first, last, noise, count)


def _verdict(losses: list[float], first: float, last: float, noise: float) -> Verdict:
    scale = max(abs(first), abs(last))
    fall = (first - last) / scale if scale else 0.0
    third = len(losses) // 3
    least = _SURE * noise * sqrt(2 / third)  # a smaller change between thirds may be noise
    lower = fmean(losses[:third]) - fmean(losses[-third:])
    since = fmean(losses[third : 2 * third]) - fmean(losses[-third:])
    # A bias that finds the mean of the labels lowers the loss a little, once.
    stalled = fall < _ONCE and abs(since) <= min(least, _STILL * scale) and min(losses) >= 0
    if (lower > least or first - last > _SURE * noise) and fall >= _MOVED and not stalled:
        return Verdict.LEARNING
    # A policy's or an adversary's loss hovers around zero by design.
    hovers = min(losses) < 0 < max(losses)
    if last - first > _SURE * noise and fall <= -_MOVED and not (hovers and last <= max(losses[:third])):
        return Verdict.WORSE
    if hovers or least > _BLIND * scale:  # noise can hide any progress
        return Verdict.UNKNOWN
    if not stalled and _wanders(losses, noise, scale):
        return Verdict.UNKNOWN
    if stalled or abs(lower) <= least or abs(fall) < _STILL or (abs(fall) < _MOVED and abs(since) <= least):
        return Verdict.FLAT
    return Verdict.UNKNOWN


def _wanders(losses: list[float], noise: float, scale: float) -> bool:
    """Whether the curve leaves its place and comes back by more than noise: that is not standing still."""
    fifth = len(losses) // 5
    means = [fmean(losses[place * fifth : (place + 1) * fifth]) for place in range(5)]
    by_chance = _WANDERED * _SURE * noise * sqrt(2 / fifth)
    return max(means) - min(means) > max(by_chance, _MOVED * scale)


def _noise(losses: list[float]) -> float:
    """The typical step between neighbours: a trend hardly shows in it, a jump not at all."""
    jumps = [abs(after - before) for before, after in pairwise(losses)]
    return median(jumps)


def warming_up(training: Training) -> bool:
    """The learning rate is still rising at the end of what was seen."""
    rates = [max(step.rates, default=0.0) for step in training.taken_steps]
    return len(rates) > 1 and rates[-1] > 1.001 * rates[len(rates) // 2]
