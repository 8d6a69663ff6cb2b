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
    best: float = 0.0
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
    window = max(3, count // 5)
    begin, end = losses[: max(3, count // 10)], losses[-window:]
    first, last = median(begin), median(end)
    noise = _noise(losses)
    best = median(sorted(losses)[:3])
    scale = max(abs(first), abs(last), noise)
    fall = (first - last) / scale if scale else 0.0
    return Progress(_verdict(losses, fall, noise), first, last, best, noise, count)


def _verdict(losses: list[float], fall: float, noise: float) -> Verdict:
    third = len(losses) // 3
    early, late = losses[:third], losses[-third:]
    error = noise * sqrt(2 / third)
    difference = fmean(early) - fmean(late)
    sure = abs(difference) > _SURE * error
    if sure and fall >= _MOVED:
        return Verdict.LEARNING
    if sure and fall <= -_MOVED:
        return Verdict.WORSE
    if min(losses) < 0 < max(losses):
        # A policy's or an adversary's loss hovers around zero by design.
        return Verdict.UNKNOWN
    if not sure or abs(fall) < _STILL:
        return Verdict.FLAT
    return Verdict.UNKNOWN


def _noise(losses: list[float]) -> float:
    """The typical step between neighbours: a trend hardly shows in it, a jump not at all."""
    jumps = [abs(after - before) for before, after in pairwise(losses)]
    return median(jumps)
