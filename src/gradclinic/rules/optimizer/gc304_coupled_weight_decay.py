"""Adam is given a weight decay, which it mixes into the gradient.

## What it finds
`Adam(..., weight_decay=...)` with a value above zero, for the whole optimizer or for one group. A
warning from 0.02 on, values that AdamW is tuned with; below that a note, for small values are a
common and often harmless habit.

## Why it hurts
Adam adds the decay to the gradient and then divides by the gradient's own size. Weights with large
gradients are hardly decayed and weights with small ones are decayed hard, the other way round than
intended, and the strength changes with the scale of the loss. Settings taken from a recipe for AdamW
mean something else here.

## What to do
`torch.optim.AdamW(model.parameters(), lr=..., weight_decay=...)`, whose decay is independent of the
gradient.

## Not the fix
Dividing the decay by the learning rate or tuning it until the loss looks right: the uneven decay stays.

## Known limits
Adam with an L2 penalty may be what a paper did; then ignore this one. A decay that only a
configuration file knows is not seen in source.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import ActorKind, EventKind, Source, Tape
from gradclinic.findings import Finding, Severity
from gradclinic.rules._rule import Rule

rule = Rule(
    "GC304",
    "coupled-weight-decay",
    Severity.WARNING,
    since="0.1.0",
    sources=(Source.STATIC, Source.RUNTIME),
    topic="weight decay",
    needs=(ActorKind.OPTIMIZER,),
    explains=("GC614",),
)

BAD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=0.05)
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
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05)
for step in range(20):
    x = torch.randn(32, 4)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
"""

MEANT_AS_ADAMW = 0.02
"""Recipes for AdamW go up to 0.1; L2 penalties for Adam, as some papers have them, end at 0.01."""


@rule.check
def decayed_by_adam(tape: Tape) -> Iterator[Finding]:
    for optimizer in tape.optimizers:
        actor = tape.actors[optimizer]
        decay = actor.attrs.get("weight_decay")
        if actor.type != "Adam" or not decay or actor.built is None:
            continue
        if not tape.count(EventKind.STEP, optimizer):
            continue
        yield rule.finding(
            f"{actor.name} is Adam with a weight decay of {decay:g}: the decay goes through its scaling, "
            "unlike AdamW's",
            actor.built,
            fix="use AdamW, which decays the weights directly",
            severity=None if decay >= MEANT_AS_ADAMW else Severity.INFO,
            confidence=0.9,
            subject=optimizer,
        )
