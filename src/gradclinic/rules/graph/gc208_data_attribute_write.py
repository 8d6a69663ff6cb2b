"""Parameters are changed through `.data`, behind the back of autograd.

## What it finds
Writes such as `p.data.mul_(0.99)` or `p.data = q` to parameters that train, inside the loop that
trains them. Between a forward and its backward they are a warning, elsewhere advice.

## Why it hurts
A write through `.data` is not counted. Between a forward and its backward it leaves autograd with
activations of one set of weights and the values of another: no error is raised, and the gradient is
that of neither. Done elsewhere it is harmless until someone moves it.

## What to do
Write after the step, where autograd can see it:

    optimizer.step()
    with torch.no_grad():
        for p in model.parameters():
            p.clamp_(-0.01, 0.01)

## Not the fix
`.detach()` in place of `.data` in the same place: torch then raises an error, and the order is still
wrong.

## Known limits
Initial values, and copies into a model that no backward of the file reaches (a target network, an
average), are left alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import DataWrite, Source
from gradclinic.findings import Finding, Severity
from gradclinic.rules._rule import Rule

rule = Rule(
    "GC208",
    "data-attribute-write",
    Severity.WARNING,
    since="0.1.0",
    sources=(Source.STATIC,),
    topic="the path of the gradient",
)

BAD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
for step in range(20):
    x = torch.randn(32, 4)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    for p in model.parameters():
        p.data.clamp_(-1, 1)
    loss.backward()
    optimizer.step()
"""

GOOD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
model[0].weight.data.normal_(0, 0.5)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
for step in range(20):
    x = torch.randn(32, 4)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for p in model.parameters():
            p.clamp_(-1, 1)
"""


@rule.check
def written_unseen(write: DataWrite) -> Iterator[Finding]:
    stale = write.backward is not None
    yield rule.finding(
        "parameters are changed through .data between a forward and its backward: the gradient is of neither"
        if stale
        else "parameters that train are changed through .data, where autograd cannot see it",
        write.where,
        evidence={"backward through the old forward": str(write.backward)} if stale else {},
        fix="write after the optimizer's step, under torch.no_grad()",
        confidence=0.9 if stale else 0.6,
        severity=None if stale else Severity.INFO,
    )
