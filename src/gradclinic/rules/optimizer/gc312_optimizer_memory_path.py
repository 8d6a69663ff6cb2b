"""The optimizer's way of stepping takes a further copy of all parameters.

## What it finds
An optimizer of the Adam family that steps all tensors of a group at once (`foreach`) where the
temporaries of such a step, as large as the group itself, come to 64 MB or more.

## Why it hurts
The peak of a step is then higher by that much than the same step tensor by tensor. Where memory is
short the run ends in the optimizer, on a model that went through forward and backward.

## What to do
Where the device has it, `fused=True` steps at once without temporaries. Otherwise `foreach=False`
goes tensor by tensor: slower on an accelerator, the same on a CPU.

## Not the fix
A smaller batch: what is too much here depends on the parameters alone.

## Known limits
Advice: with memory to spare there is nothing to mend. `foreach` that was not asked for is the default
on accelerators, and judged there too. A fused step under a GradScaler unscales within its kernel, and
some frameworks refuse to clip beside it; they say so themselves.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import Census, Source
from gradclinic.findings import Finding, Severity
from gradclinic.rules._rule import Rule

rule = Rule(
    "GC312",
    "optimizer-memory-path",
    Severity.INFO,
    since="0.1.0",
    sources=(Source.RUNTIME,),
    topic="memory",
)

BAD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=True)
for step in range(3):
    x = torch.randn(4, 64)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
"""

GOOD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
for step in range(3):
    x = torch.randn(4, 64)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
"""

TAKES_A_ROOT_OF_ALL = frozenset({"Adam", "AdamW", "NAdam", "RAdam", "RMSprop", "Adagrad", "Adadelta"})
"""Their denominator, made for all tensors of a group before the first is updated, is the further copy."""
WORTH_SAYING = 64e6
"""Bytes."""


@rule.check
def steps_with_a_further_copy(census: Census) -> Iterator[Finding]:
    for holder in census.holders:
        if holder.type not in TAKES_A_ROOT_OF_ALL:
            continue
        copied = max((group.bytes for group in holder.groups if group.at_once), default=0)
        if copied >= WORTH_SAYING:
            yield rule.finding(
                f"each step of {holder.name} takes {copied / 1e6:.0f} MB for a moment, "
                "as much again as its parameters",
                holder.built,
                evidence={"largest group": f"{copied / 1e6:.0f} MB", "way of stepping": "foreach"},
                fix="fused=True where the device has it; foreach=False where memory is short",
                confidence=0.8,
                subject=holder.id,
            )
