"""Memory rises step after step.

## What it finds
Resident memory of the process that grows by a megabyte or more per step, evenly, from the time training
is under way until the end.

## Why it hurts
The run ends when memory does, hours later and without a word about the line that kept things.

## What to do
Look for what grows: outputs or batches appended to a list, a cache without a limit, a loss kept with its
graph. Keep numbers: `losses.append(loss.item())`.

## Not the fix
`gc.collect()` or emptying the allocator's cache: what is still referenced cannot be freed.

## Known limits
Advice: a replay buffer or a cache that is being filled looks the same. Memory of the host is seen, that
of an accelerator is not.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from statistics import median

from gradclinic.facts.memory import MemoryGrowth
from gradclinic.facts.source import Source
from gradclinic.findings import Finding, Severity
from gradclinic.rules._rule import Rule

rule = Rule(
    "GC613",
    "memory-growth",
    Severity.INFO,
    since="0.1.0",
    sources=(Source.RUNTIME,),
    topic="memory",
)

BAD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
kept = []
for step in range(70):
    x = torch.randn(32, 4)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
    kept.append(torch.ones(500_000))
"""

GOOD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
kept = []
for step in range(70):
    x = torch.randn(32, 4)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
    kept = [*kept[-5:], torch.ones(500_000)]
"""

FEWEST_LOOKS = 8
PER_STEP, IN_ALL = 1.0, 64.0
"""Megabytes."""


@rule.check
def rises_to_the_end(memory: MemoryGrowth) -> Iterator[Finding]:
    if len(memory.steps) < FEWEST_LOOKS:
        return
    sizes = list(zip(memory.steps, memory.megabytes, strict=True))
    slopes = [(after - before) / (later - step) for (step, before), (later, after) in pairwise(sizes)]
    grown = memory.megabytes[-1] - memory.megabytes[0]
    typical = median(slopes)
    if typical < PER_STEP or grown < IN_ALL or min(slopes) < typical / 3:
        return
    yield rule.finding(
        f"memory grows by {typical:.1f} MB per step",
        None,
        evidence={
            "resident": f"{memory.megabytes[0]:.0f} MB at step {memory.steps[0]}, "
            f"{memory.megabytes[-1]:.0f} MB at step {memory.steps[-1]}"
        },
        fix="look for what is kept: outputs in a list, a cache without a limit, losses with their graph",
        confidence=0.7,
    )
