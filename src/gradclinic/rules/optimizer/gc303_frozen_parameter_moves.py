"""A frozen parameter is still moved by its optimizer.

## What it finds
A parameter with `requires_grad=False` in an optimizer's hands whose values a step changes: a
gradient from before it was frozen is still there, be it zeros, so weight decay and momentum act.

## Why it hurts
The part that was to be kept drifts: decay shrinks it towards zero, momentum carries it on.

## What to do
Give the optimizer only what trains, `[p for p in model.parameters() if p.requires_grad]`, or set
the gradient of what is frozen to None: `zero_grad(set_to_none=True)` after freezing.

## Not the fix
A smaller learning rate for it: it drifts slower.

## Known limits
Looked at on a few steps, and only for tensors of up to a million values.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import Census, Source
from gradclinic.findings import Finding, Severity
from gradclinic.rules._naming import listed, modules_of
from gradclinic.rules._rule import Rule

rule = Rule(
    "GC303",
    "frozen-parameter-moves",
    Severity.WARNING,
    since="0.1.0",
    sources=(Source.RUNTIME,),
    topic="frozen parts",
)

BAD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
for step in range(40):
    if step == 4:
        model[0].requires_grad_(False)
    x = torch.randn(32, 4)
    optimizer.zero_grad(set_to_none=False)
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
"""

GOOD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
for step in range(40):
    if step == 4:
        model[0].requires_grad_(False)
    x = torch.randn(32, 4)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
"""


@rule.check
def moved_though_frozen(census: Census) -> Iterator[Finding]:
    moved = [p for p in census.parameters if p.moved_frozen and not p.trainable]
    if not moved:
        return
    holder = census.holder_of(moved[0])
    yield rule.finding(
        f"{listed(modules_of(moved), most=2)} does not require a gradient, and "
        f"{holder.name if holder else 'its optimizer'} moves it all the same",
        holder.built if holder else None,
        evidence={"frozen, and changed by a step": listed(p.name for p in moved)},
        fix="pass only parameters that require a gradient, or set the frozen ones' .grad to None",
        confidence=0.95,
        subject=holder.id if holder else "",
    )
