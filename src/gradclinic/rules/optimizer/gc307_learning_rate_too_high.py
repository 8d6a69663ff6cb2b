"""Updates are so large that they undo each other or throw the weights away.

## What it finds
Updates that move the weights by more than a tenth of their size, where a thousandth is usual, in a run
whose loss rises, does not fall, or ends in NaN.

Under `probe`: a rate at which one batch cannot be learned while a tenth or a hundredth of it can, or a
rate above the one where the loss diverges.

## Why it hurts
Each update overshoots the minimum it aims at. The loss oscillates, grows, or the activations saturate
or die and nothing is left to learn with.

## What to do
Lower the learning rate; the finding suggests the one at which the measured updates would have their
usual size. Add a warm-up. `gradclinic probe lr` finds a good range by experiment.

## Not the fix
Clipping alone under Adam, which divides the clipped gradient by its own size and takes the same step.
Skipping the updates that give NaN.

## Known limits
A run that learns is left alone whatever the size of its updates. In games of several optimizers, where
a rising loss may be the other side's success, only a breakdown counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import hypot, isfinite
from statistics import median

from gradclinic.facts.fitting import Fit, Overfit, RateRange
from gradclinic.facts.source import Source
from gradclinic.facts.training import Training
from gradclinic.findings import Finding, Severity
from gradclinic.rules._rule import Rule
from gradclinic.rules.health._advice import learning_rate
from gradclinic.rules.health._progress import Verdict, progress

rule = Rule(
    "GC307",
    "learning-rate-too-high",
    Severity.WARNING,
    since="0.1.0",
    sources=(Source.RUNTIME, Source.PROBE),
    topic="learning rate",
    explains=("GC601", "GC603", "GC612", "GC506", "GC507", "GC508", "GC607", "GC608"),
)

BAD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=3.0)
for step in range(40):
    x = torch.randn(64, 8)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
"""

BAD_ADAM = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=1.0)
x = torch.randn(512, 16)
labels = (x @ torch.randn(16, 10)).argmax(1)
for step in range(100):
    rows = torch.randint(0, 512, (64,))
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x[rows]), labels[rows])
    loss.backward()
    optimizer.step()
"""

BAD_CASE = """
import torch
from torch import nn

from gradclinic import Case


def make():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 3))
    batch = torch.randn(16, 4), torch.randint(0, 3, (16,))
    return Case(
        model,
        batch,
        lambda out, batch: nn.functional.cross_entropy(out, batch[1]),
        optimizer=lambda params: torch.optim.SGD(params, lr=50.0, momentum=0.9),
    )
"""

GOOD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.03)
for step in range(40):
    x = torch.randn(64, 8)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
"""

GOOD_CASE = """
import torch
from torch import nn

from gradclinic import Case


def make():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 3))
    batch = torch.randn(16, 4), torch.randint(0, 3, (16,))
    return Case(
        model,
        batch,
        lambda out, batch: nn.functional.cross_entropy(out, batch[1]),
        optimizer=lambda params: torch.optim.SGD(params, lr=0.1, momentum=0.9),
    )
"""

LEAPS = 0.1
LONG = 50
ORDINARY_SGD = 0.01
FAR, REPLACED = 100.0, 0.5
"""The loss a hundred times what it was, after updates of half the size of the weights."""
STEEP, VERY_STEEP = 30.0, 3000.0
"""Norm of the gradient over that of the weights."""


@rule.check
def updates_too_large(training: Training) -> Iterator[Finding]:
    largest = _largest_ratio(training)
    if largest < LEAPS or training.climbs or _gradients_are_to_blame(training):
        return
    what = _harm(training)
    if what is None:
        return
    rates = [max(step.rates, default=0.0) for step in training.taken_steps]
    losses = [loss for _, loss in training.losses]
    typical = _first_leap(training)
    yield rule.finding(
        f"a learning rate of {max(rates):g} moves the weights by {typical:.0%} of their size per update, "
        f"and the loss {what}",
        training.optimizer.built or training.stepped,
        evidence={
            "update to weight": f"{typical:.2g} at first, {largest:.2g} at most, 1e-03 is usual",
            "loss": f"{losses[0]:.3g} at first, {losses[-1]:.3g} last, {max(losses):.3g} at most"
            if losses
            else "never finite",
        },
        fix=f"start at about {learning_rate(max(rates), typical)}, where updates would have their usual size",
        confidence=0.9,
        subject=training.optimizer.id,
    )


def _largest_ratio(training: Training) -> float:
    return max((ratio for _, ratio in training.typical_ratios), default=0.0)


def _early_ratio(training: Training) -> float:
    return median(ratio for _, ratio in training.typical_ratios[:5])


def _first_leap(training: Training) -> float:
    return max(ratio for _, ratio in training.typical_ratios[:5])


def _gradients_are_to_blame(training: Training) -> bool:
    """A plain step at an ordinary rate is that large because the gradients are, from the first one on."""
    if training.adaptive or not training.samples:
        return False
    first, sample = training.taken_steps[0], training.samples[0]
    weight = hypot(*(value for value in sample.weights if value > 0))
    rate = max(first.rates, default=0.0)
    return first.used > (STEEP if rate <= ORDINARY_SGD else VERY_STEEP) * weight


def _harm(training: Training) -> str | None:
    losses = [loss for _, loss in training.losses]
    if training.breakdown is not None:
        grew = len(losses) > 1 and max(losses[1:]) > 2 * abs(losses[0])
        return "grows until it is not finite" if grew or _norms_grew(training) else None
    if not training.alone or len(losses) < 5 or _early_ratio(training) < LEAPS:
        return None
    outcome = progress(training)
    if outcome.verdict is Verdict.FLAT:
        return "does not fall"
    if outcome.verdict is Verdict.WORSE and (len(losses) >= LONG or outcome.last > 2 * outcome.first):
        return "rises"
    if min(losses) < 0 or losses[0] == 0:
        return None
    if median(losses[-3:]) > 10 * losses[0]:
        return "rises"
    leapt, came_back = max(losses) / losses[0], median(losses[-5:]) / losses[0]
    if leapt > FAR and _first_leap(training) > REPLACED:
        return f"leaps to {max(losses):.3g}"
    beyond_noise = max(losses) - losses[0] > 10 * outcome.noise
    if (
        len(losses) >= LONG
        and beyond_noise
        and ((leapt > 10 and came_back > 0.8) or (leapt > 1.5 and came_back > 0.95))
    ):
        return f"leaps to {max(losses):.3g} and hardly gets below where it began"
    if len(losses) >= LONG and beyond_noise and leapt > 1.1 and _never_settles(training, losses):
        return f"leaps to {max(losses):.3g} and stays at {median(losses[-5:]):.3g}"
    return None


def _never_settles(training: Training, losses: list[float]) -> bool:
    """The first updates threw the weights away, and most of the first loss is still there, and stays."""
    half, quarter = len(losses) // 2, len(losses) // 4
    level, last = median(losses[half:-quarter]), median(losses[-quarter:])
    return _first_leap(training) > REPLACED and last > 0.75 * losses[0] and last > 0.98 * level


def _norms_grew(training: Training) -> bool:
    norms = [step.norm for step in training.taken_steps if isfinite(step.norm)]
    return len(norms) > 1 and max(norms[1:]) > 10 * norms[0]


@rule.check
def only_a_lower_rate_fits(overfit: Overfit) -> Iterator[Finding]:
    own, rescue = overfit.own, overfit.rescue
    if own.fit in (Fit.STUCK, Fit.DIVERGES) and rescue is not None and rescue.rate < own.rate:
        yield rule.finding(
            f"one batch is not learned at a learning rate of {own.rate:.2g}, and is at {rescue.rate:.2g}",
            overfit.where,
            evidence={
                f"{own.steps} steps at {own.rate:.2g}": f"loss {own.first:.4g} to {own.last:.4g}",
                f"{rescue.steps} steps at {rescue.rate:.2g}": f"loss {rescue.first:.4g} to {rescue.last:.4g}",
            },
            fix=f"lower the learning rate to about {rescue.rate:.2g}",
            subject="learning rate",
        )


@rule.check
def above_divergence(found: RateRange) -> Iterator[Finding]:
    if found.own.loss > found.first and found.suggestion is not None:
        yield rule.finding(
            f"at the learning rate of {found.own.rate:.2g} the loss rises",
            None,
            evidence={
                "after a few steps at it": f"loss {found.first:.4g} to {found.own.loss:.4g}",
                "the loss diverges from": f"{found.diverges:.2g}" if found.diverges else "beyond the range",
                "a rate that suits": f"{found.suggestion:.2g}: {found.reason}",
            },
            fix=f"lower the learning rate to about {found.suggestion:.2g}",
            subject="learning rate",
        )
