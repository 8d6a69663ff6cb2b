"""Two runs from the same seed give different results.

## What it finds
Training that differs between two runs although every random stream was seeded alike: the first
batch, module output, gradient or weight that does.

## Why it hurts
No change can be judged by comparing runs, and no failure can be brought back. The cause is
randomness outside the seeded streams: a generator seeded by the clock, the order of a set or a
directory, an operation whose additions come in another order each time.

## What to do
Seed the source that is named, or draw from `torch` itself. For operations,
`torch.use_deterministic_algorithms(True)` names those at fault.

## Not the fix
Setting the seed again at every step: it makes each step draw the same numbers.

## Known limits
Compared over a few steps on one machine; another device or version of torch may differ by rights.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import Source
from gradclinic.facts.repeat import Repeat
from gradclinic.findings import Finding, Severity
from gradclinic.rules._rule import Rule

rule = Rule(
    "GC714",
    "not-repeatable",
    Severity.WARNING,
    since="0.1.0",
    sources=(Source.PROBE,),
    topic="repeatability",
)

BAD = """
import os
import random

import torch
from torch import nn

from gradclinic import Case


class Noisy(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        seed = int.from_bytes(os.urandom(4))
        noise = torch.randn(x.shape, generator=torch.Generator().manual_seed(seed))
        return self.head(x + 0.1 * noise)


def make():
    batch = torch.randn(16, 4), torch.randint(0, 3, (16,))
    return Case(Noisy(), batch, lambda out, batch: nn.functional.cross_entropy(out, batch[1]))
"""

GOOD = """
import torch
from torch import nn

from gradclinic import Case


def make():
    model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.ReLU(), nn.Linear(8, 3))
    batch = torch.randn(16, 4), torch.randint(0, 3, (16,))
    return Case(model, batch, lambda out, batch: nn.functional.cross_entropy(out, batch[1]))
"""


@rule.check
def differs_from_one_seed(seen: Repeat) -> Iterator[Finding]:
    if seen.same:
        return
    when = "before the first step" if seen.step == -1 else f"at step {(seen.step or 0) + 1}"
    yield rule.finding(
        f"two runs from one seed differ: {seen.what} {when}",
        seen.where,
        evidence={"largest difference of a weight": f"{seen.distance:.2g} after {seen.steps} steps"},
        fix="draw from torch's own stream there, or seed the source",
        confidence=0.97,
    )
