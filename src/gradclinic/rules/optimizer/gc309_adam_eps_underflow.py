"""Adam's eps is zero in the precision its state is kept in.

## What it finds
An optimizer of the Adam family over half-precision parameters whose `eps` rounds to zero: 1e-8 in
float16 is 0.

## Why it hurts
eps keeps the update finite where the second moment is zero. Without it the update is 0/0 or
something over zero: the first such step fills the parameter with NaN or inf.

## What to do
Keep parameters and optimizer state in float32 and compute in half precision under `autocast`, or
use bfloat16, or an eps that float16 can hold (1e-4 or more).

## Not the fix
A smaller learning rate: the division is still by zero.

## Known limits
Judged from the parameters' precision; an optimizer that keeps its own float32 state is safe.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import Census, Source
from gradclinic.findings import Finding, Severity
from gradclinic.rules._rule import Rule

rule = Rule(
    "GC309",
    "adam-eps-underflow",
    Severity.WARNING,
    since="0.1.0",
    sources=(Source.RUNTIME,),
    topic="optimizer settings",
    explains=("GC506", "GC507", "GC508"),
)

BAD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1).half()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(3):
    x = torch.randn(32, 4).half()
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
"""

GOOD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1).bfloat16()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(20):
    x = torch.randn(32, 4).bfloat16()
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
"""

KEEPS_STATE_IN_PARAMETER_PRECISION = frozenset(
    {"Adam", "AdamW", "NAdam", "RAdam", "Adamax", "RMSprop", "Adagrad"}
)


@rule.check
def eps_rounds_to_zero(census: Census) -> Iterator[Finding]:
    for holder in census.holders:
        if holder.type not in KEEPS_STATE_IN_PARAMETER_PRECISION:
            continue
        for group in holder.groups:
            if group.eps and group.eps_in_state == 0.0:
                yield rule.finding(
                    f"eps={group.eps:g} of {holder.name} is zero in {group.dtype}",
                    holder.built,
                    evidence={"eps": f"{group.eps:g}", "parameters and state": group.dtype},
                    fix="keep the parameters in float32 and use autocast, or bfloat16, or a larger eps",
                    confidence=0.9,
                    subject=holder.id,
                )
                break
