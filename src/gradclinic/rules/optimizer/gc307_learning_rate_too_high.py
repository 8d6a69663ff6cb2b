"""The learning rate is far too high: the loss rises, oscillates or stays where noise holds it.

## What it finds
A rate at which one batch cannot be learned while a tenth or a hundredth of it can, or a rate above
the one where the loss diverges.

## Why it hurts
Each step jumps over the valley it aims at. The loss rises, becomes NaN, or hangs at the level of a
constant guess, which looks like a model that cannot learn.

## What to do
Lower the rate: the evidence names one that worked here, `gradclinic probe lr` finds one. For large
models add a warm-up.

## Not the fix
Clipping alone: it bounds the length of a step, not its being too long everywhere.

## Known limits
The rate is judged at the start of training; a later phase may want another one.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import Source
from gradclinic.facts.fitting import Fit, Overfit, RateRange
from gradclinic.findings import Finding, Severity
from gradclinic.rules._rule import Rule

rule = Rule(
    "GC307",
    "learning-rate-too-high",
    Severity.WARNING,
    since="0.1.0",
    sources=(Source.PROBE,),
    topic="learning rate",
    explains=("GC612",),
)

BAD = """
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
