"""The learning rate is far too low: the loss crawls although the gradients are healthy.

## What it finds
A rate at which the model does not learn one batch by heart while ten times that rate does, or a
rate more than a hundred times below the one that suits the model.

## Why it hurts
Training looks broken, or takes a hundred times as long. Since nothing fails, the model or the data
are blamed.

## What to do
Raise the rate: the evidence names one that worked here, `gradclinic probe lr` finds one. Check that
a schedule or a warm-up does not hold it down.

## Not the fix
More epochs, a larger model.

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
    "GC306",
    "learning-rate-too-low",
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
        optimizer=lambda params: torch.optim.Adam(params, lr=1e-5),
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
        optimizer=lambda params: torch.optim.Adam(params, lr=1e-2),
    )
"""

FAR_BELOW = 100


@rule.check
def only_a_higher_rate_fits(overfit: Overfit) -> Iterator[Finding]:
    own, rescue = overfit.own, overfit.rescue
    if own.fit is Fit.STUCK and rescue is not None and rescue.rate > own.rate:
        yield rule.finding(
            f"one batch is not learned at a learning rate of {own.rate:.2g}, and is at {rescue.rate:.2g}",
            overfit.where,
            evidence={
                f"{own.steps} steps at {own.rate:.2g}": f"loss {own.first:.4g} to {own.last:.4g}",
                f"{rescue.steps} steps at {rescue.rate:.2g}": f"loss {rescue.first:.4g} to {rescue.last:.4g}",
            },
            fix=f"raise the learning rate to about {rescue.rate:.2g}",
            subject="learning rate",
        )


@rule.check
def far_below_what_suits(found: RateRange) -> Iterator[Finding]:
    if found.suggestion is not None and found.own.rate * FAR_BELOW < found.suggestion:
        yield rule.finding(
            f"the learning rate of {found.own.rate:.2g} is {found.suggestion / found.own.rate:.0f} times "
            "below the one that suits this model",
            None,
            evidence={"a rate that suits": f"{found.suggestion:.2g}: {found.reason}"},
            fix=f"raise the learning rate to about {found.suggestion:.2g}",
            subject="learning rate",
        )
