"""The loss does not move beyond its noise.

## What it finds
A model that cannot learn even one fixed batch by heart, with dropout and weight decay off: the loss
stays near its first value, or rises.

## Why it hurts
A sound model, loss and step fit a handful of samples in a few hundred steps. One that does not has
a fault that no amount of data or tuning removes. This is a symptom: its cause is shown above it
where one was found.

## What to do
Look for the cause with `gradclinic probe flow`, `init`, `batch` and `lr`, in this order; then at the
pairs of inputs and labels themselves.

## Not the fix
Training longer, or a larger model.

## Known limits
For a loss of your own whose least value is not known, only one that stands still is reported.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import Source
from gradclinic.facts.fitting import Fit, Overfit
from gradclinic.findings import Finding, Kind, Severity
from gradclinic.rules._rule import Rule

rule = Rule(
    "GC612",
    "not-learning",
    Severity.WARNING,
    since="0.1.0",
    sources=(Source.PROBE,),
    topic="learning",
    kind=Kind.SYMPTOM,
)

BAD = """
import torch
from torch import nn

from gradclinic import Case


def make():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 3))
    batch = torch.ones(24, 4), torch.arange(24) % 3
    return Case(model, batch, lambda out, batch: nn.functional.cross_entropy(out, batch[1]))
"""

GOOD = """
import torch
from torch import nn

from gradclinic import Case


def make():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 3))
    batch = torch.randn(24, 4), torch.arange(24) % 3
    return Case(
        model,
        batch,
        lambda out, batch: nn.functional.cross_entropy(out, batch[1]),
        optimizer=lambda params: torch.optim.Adam(params, lr=1e-2),
    )
"""


@rule.check
def cannot_fit_one_batch(overfit: Overfit) -> Iterator[Finding]:
    own = overfit.own
    if own.fit not in (Fit.STUCK, Fit.DIVERGES):
        return
    tried = ", ".join(f"{a.last:.3g} at rate {a.rate:.2g}" for a in overfit.retries)
    floor = "unknown" if own.floor is None else f"{own.floor:.3g}"
    yield rule.finding(
        f"the model cannot learn one batch: loss {own.first:.4g} to {own.last:.4g} in {own.steps} steps",
        overfit.where,
        evidence={
            "its least value": floor,
            "with": f"{own.optimizer}, learning rate {own.rate:.2g}",
            **({"other rates ended at": tried} if tried else {}),
        },
        fix="look for the cause first: gradclinic probe flow, init, batch, lr",
        confidence=0.9,
    )
