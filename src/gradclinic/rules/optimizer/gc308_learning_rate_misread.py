"""Something else than the learning rate is taken for it.

## What it finds
`scheduler.get_lr()` called to learn the current rate, and a setting such as `args.lr` logged as the
rate while a schedule changes it.

## Why it hurts
`get_lr()` is the schedule's own computation of its next value. Called from outside it applies a
factor once more at the steps where the rate changes (torch warns about it), so the log shows a rate
that was never used. And a setting is only where the rate began. Both make a wrong schedule look right.

## What to do
`scheduler.get_last_lr()[0]`, or `optimizer.param_groups[0]["lr"]`, which is what the next step uses.

## Not the fix
Silencing the warning.

## Known limits
Some schedules compute every rate from the first one, so that `get_lr()` gives the right answer, if with a
warning: `LambdaLR` and what transformers builds of it, `OneCycleLR`, `CyclicLR`,
`CosineAnnealingWarmRestarts`. Nothing is said of these, nor where a setting chooses between one of them and
another schedule. Of one that is given as an argument, where some file of the project has one of them or
writes a schedule itself, it is said that the rate may be right.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import Source
from gradclinic.facts.rates import RateReading
from gradclinic.findings import Edit, Finding, Fix, Severity
from gradclinic.rules._rule import Rule

rule = Rule(
    "GC308",
    "learning-rate-misread",
    Severity.INFO,
    since="0.1.0",
    sources=(Source.STATIC,),
    topic="reading of the learning rate",
)

BAD = """
import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2)
for epoch in range(6):
    for step in range(10):
        x = torch.randn(8, 4)
        loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    scheduler.step()
    print("lr", scheduler.get_lr()[0])
"""

GOOD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2)
for epoch in range(6):
    for step in range(10):
        x = torch.randn(8, 4)
        loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    scheduler.step()
    print("lr", scheduler.get_last_lr()[0])
"""


@rule.check
def not_the_rate(reading: RateReading) -> Iterator[Finding]:
    if reading.read == "get_lr()":
        wrong = "is not" if reading.sure else "is for some schedules only"
        message = f"{reading.schedule}.get_lr() {wrong} the current learning rate"
        fix = Fix(f"read it with {reading.schedule}.get_last_lr()", _exchanged(reading))
    else:
        message = f"{reading.read} is logged as the learning rate, which {reading.schedule} changes"
        fix = Fix(f"log {reading.schedule}.get_last_lr()[0]")
    yield rule.finding(message, reading.where, fix=fix, confidence=0.9 if reading.sure else 0.5)


def _exchanged(reading: RateReading) -> tuple[Edit, ...]:
    at = reading.attribute
    if at is None:
        return ()
    return (Edit(at.path, at.line, at.column, at.line, at.column + len("get_lr"), "get_last_lr"),)
