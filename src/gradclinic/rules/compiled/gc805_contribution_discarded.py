"""A variant keeps the first rows of a tensor where eager sums all rows to their owners.

## What it finds
An output that differs from eager, and equals what eager would give if a scatter-sum (`index_add`,
`scatter_add`) were replaced by a slice of the rows it sums: images of periodic atoms, halo nodes
of a partition, padded tokens whose contributions belong to others.

## Why it hurts
The contributions of all other rows are thrown away. Directions stay roughly right (cosines near
one), shapes are right, and training converges to a slightly wrong physics.

## What to do
Sum the rows back in the variant as eager does:

    force = torch.zeros(n, 3).index_add(0, owner, extended_force)

## Not the fix
Raising the weight of the term, or loosening a consistency test until it passes.

## Known limits
Needs a model that can be traced as a whole, and a sum along one dimension.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import Source
from gradclinic.facts.variants import CompileReport, TrialKind
from gradclinic.findings import Finding, Severity
from gradclinic.rules._rule import Rule
from gradclinic.rules.compiled._variants import TOPIC, cured, seen

rule = Rule(
    "GC805",
    "contribution-discarded",
    Severity.ERROR,
    since="0.1.0",
    sources=(Source.PROBE,),
    topic=TOPIC,
)

BAD = """
import torch
from torch import nn

from gradclinic import Case


class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(3, 3).double()

    def forward(self, batch):
        return fold(self.net(batch["coord"]), batch["owner"])


def fold(rows, owner):
    return torch.zeros(4, 3, dtype=rows.dtype).index_add(0, owner, rows)


def ours(model):
    return lambda batch: model.net(batch["coord"])[:4]


def make():
    owner = torch.tensor([0, 1, 2, 3, 0, 1, 1, 2, 3])
    batch = {"batch": {"coord": torch.randn(9, 3, dtype=torch.float64), "owner": owner}}
    loss = {"force": lambda force, batch: (force - 1).square().mean()}
    return Case(Field(), batch, terms=loss, variants={"ours": ours})
"""

GOOD = """
import torch
from torch import nn

from gradclinic import Case


class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(3, 3).double()

    def forward(self, batch):
        return fold(self.net(batch["coord"]), batch["owner"])


def fold(rows, owner):
    return torch.zeros(4, 3, dtype=rows.dtype).index_add(0, owner, rows)


def ours(model):
    return lambda batch: fold(model.net(batch["coord"]), batch["owner"])


def make():
    owner = torch.tensor([0, 1, 2, 3, 0, 1, 1, 2, 3])
    batch = {"batch": {"coord": torch.randn(9, 3, dtype=torch.float64), "owner": owner}}
    loss = {"force": lambda force, batch: (force - 1).square().mean()}
    return Case(Field(), batch, terms=loss, variants={"ours": ours})
"""


@rule.check
def sliced(report: CompileReport) -> Iterator[Finding]:
    for variant, trial in cured(report, TrialKind.SLICE):
        yield rule.finding(
            f"{variant.name!r} slices where eager sums ({trial.what}): {trial.detail}, the rest is discarded",
            trial.where,
            evidence=seen(report, variant),
            fix="sum all rows to their owners in the variant, as the line shown does",
            confidence=0.97,
            subject=variant.name,
        )
