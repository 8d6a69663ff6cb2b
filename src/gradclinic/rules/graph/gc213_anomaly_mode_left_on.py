"""Anomaly detection is on for the whole training.

## What it finds
`torch.autograd.set_detect_anomaly(True)` or `detect_anomaly()` around every backward of a run.

## Why it hurts
It records a stack for each operation and checks each gradient for NaN: several times the time per
step, for a tool that is needed for one step.

## What to do
Turn it on around the step that fails, and off again.

## Not the fix
Leaving it on with `check_nan=False`: the stacks are what costs.

## Known limits
Runs of a few backwards are taken for debugging and not reported.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import AnomalyMode, Source
from gradclinic.findings import Finding, Severity
from gradclinic.rules._rule import Rule

rule = Rule(
    "GC213",
    "anomaly-mode-left-on",
    Severity.WARNING,
    since="0.1.0",
    sources=(Source.STATIC, Source.RUNTIME),
    topic="graphs kept in memory",
)

BAD = """
import torch
from torch import nn

torch.manual_seed(0)
torch.autograd.set_detect_anomaly(True)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
for step in range(20):
    x = torch.randn(32, 4)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
"""

GOOD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
for step in range(20):
    x = torch.randn(32, 4)
    optimizer.zero_grad()
    with torch.autograd.set_detect_anomaly(step < 2):
        loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
        loss.backward()
    optimizer.step()
"""

ENOUGH_BACKWARDS = 10


@rule.check
def never_turned_off(mode: AnomalyMode) -> Iterator[Finding]:
    if (mode.lasting or mode.backwards >= ENOUGH_BACKWARDS) and mode.backwards == mode.of:
        yield rule.finding(
            "anomaly detection is on for every backward of the run",
            mode.where,
            evidence={} if mode.lasting else {"backwards under it": f"{mode.backwards} of {mode.of}"},
            fix="turn it on only around the step that is being looked into",
            confidence=0.95,
        )
