"""The first loss is far from what chance gives.

## What it finds
A loss that, before any training, is more than twice that of a uniform guess over the classes, ten
times that of predicting zero, or a hundred times that of predicting the targets' mean.

## Why it hurts
The model starts confidently wrong. The first hundred steps only shrink the outputs, often through
gradients large enough to ruin the earlier layers; with a warm-up they are lost altogether.

## What to do
Start the last layer small (or at zero) and its bias at the base rate: the logarithm of the class
frequencies, or the mean of the targets. Scale regression targets to mean 0 and deviation 1. Check
that embeddings that are tied to the output have a small deviation, such as 0.02.

## Not the fix
A longer warm-up: it hides the first steps and leaves their cause.

## Known limits
Judged for the losses of `torch.nn.functional` with one value for the batch. A first loss below
chance is not reported, since trained weights start there. While a script runs only cross-entropies are
judged, before the first update and where nothing was loaded, and three times chance is advice: a run may
recover from it by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite, log

from gradclinic.facts import LossCall, Source
from gradclinic.facts.levels import InitialLoss, LossLevel
from gradclinic.findings import Finding, Severity
from gradclinic.rules._rule import Rule

rule = Rule(
    "GC411",
    "initial-loss-off",
    Severity.WARNING,
    since="0.1.0",
    sources=(Source.RUNTIME, Source.PROBE),
    topic="first loss",
)

BAD = """
import torch
from torch import nn

from gradclinic import Case


def make():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 10))
    nn.init.normal_(model[-1].weight, std=3.0)
    batch = torch.randn(16, 4), torch.randint(0, 10, (16,))
    return Case(model, batch, lambda out, batch: nn.functional.cross_entropy(out, batch[1]))
"""

BAD_TRAINING = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 10))
nn.init.normal_(model[-1].weight, std=10.0)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(15):
    x = torch.randn(64, 4)
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), x.argmax(1))
    loss.backward()
    optimizer.step()
"""

GOOD = """
import torch
from torch import nn

from gradclinic import Case


def make():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 10))
    batch = torch.randn(16, 4), torch.randint(0, 10, (16,))
    return Case(model, batch, lambda out, batch: nn.functional.cross_entropy(out, batch[1]))
"""

OVER_UNIFORM = 2.0
OVER_ZERO = 10.0
OVER_MEAN = 100.0
OVER_CHANCE = 3.0


@rule.check
def far_from_a_guess(call: LossCall) -> Iterator[Finding]:
    classes = _classes(call)
    value = call.first_value
    if not (call.untrained and call.trains and call.reduction == "mean") or classes < 2 or value is None:
        return
    chance = log(classes)
    if not isfinite(value) or value < max(OVER_CHANCE * chance, chance + OVER_CHANCE):
        return
    yield rule.finding(
        f"the first {call.loss} is {value:.4g}, {value / chance:.1f} times that of a uniform guess",
        call.where,
        evidence={"a blind guess": f"{chance:.4g} (uniform over {classes} classes)"},
        fix="start the last layer with small weights, and check the scale of the inputs",
        confidence=0.8,
        # Tied weights and raw inputs begin far off as well, and many of them learn all the same.
        severity=Severity.INFO,
        subject=call.loss,
    )


def _classes(call: LossCall) -> int:
    """How many a uniform guess is over; 0 where there is no such thing."""
    if call.loss == "binary_cross_entropy_with_logits":
        return 2
    shape = call.input_shape or ()
    return shape[1] if call.loss == "cross_entropy" and len(shape) > 1 and not call.target_is_float else 0


@rule.check
def far_from_chance(first: InitialLoss) -> Iterator[Finding]:
    for level in first.levels:
        reason, fix = _off(level)
        if reason:
            yield rule.finding(
                f"the first {level.loss} is {level.value:.4g}, {reason}",
                level.where,
                evidence={
                    "a blind guess": f"{level.chance:.4g}{_meaning(level)}",
                    "the best constant guess": f"{level.base_rate:.4g}",
                },
                fix=fix,
                confidence=0.85,
                subject=level.loss,
            )


def _off(level: LossLevel) -> tuple[str, str]:
    small = "start the last layer with small weights"
    if not level.chance > 0:
        return "", ""
    if level.classes and level.value > OVER_UNIFORM * level.chance:
        return f"{level.value / level.chance:.1f} times that of a uniform guess", small
    if not level.classes and level.value > OVER_ZERO * level.chance:
        return f"{level.value / level.chance:.3g} times that of predicting zero", small
    # Targets that are all alike have no spread to compare with.
    if not level.classes and level.value > OVER_MEAN * level.base_rate > 1e-6 * level.chance:
        far = f"{level.value / level.base_rate:.3g} times that of predicting the mean of the targets"
        return far, "scale the targets to mean 0, or start the last bias at their mean"
    return "", ""


def _meaning(level: LossLevel) -> str:
    return f" (uniform over {level.classes} classes)" if level.classes else " (zero)"
