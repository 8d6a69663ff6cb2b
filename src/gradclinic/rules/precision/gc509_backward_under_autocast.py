"""The backward runs inside the autocast block.

## What it finds
`backward()` called while `torch.autocast` is on: the block was drawn around more than the forward
and the loss.

## Why it hurts
Backward operations run in the precision of their forward by themselves; the block adds nothing to
them. But what is computed anew in there is cast once more: custom functions, hooks, gradient
penalties, norms. And the step that often stands in the same block works on casts of its own. torch
advises against it.

## What to do
Close the block after the loss:

    with torch.autocast("cuda", dtype=torch.float16):
        loss = criterion(model(x), y)
    scaler.scale(loss).backward()

## Not the fix
`autocast(enabled=False)` around the backward: closing the block earlier is the same and simpler.

## Known limits
A note in source, since most models come through unharmed. Blocks that call an autocast are followed there,
of torch or one of the project, not one that a variable holds.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import EventKind, Source, Tape, cadence
from gradclinic.findings import Finding, Severity
from gradclinic.rules._rule import Rule

rule = Rule(
    "GC509",
    "backward-under-autocast",
    Severity.WARNING,
    since="0.1.0",
    sources=(Source.STATIC, Source.RUNTIME),
    topic="mixed precision",
    needs=(EventKind.BACKWARD,),
)

BAD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
for step in range(20):
    x = torch.randn(32, 4)
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = nn.functional.mse_loss(model(x).float(), x.sum(1, keepdim=True))
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
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = nn.functional.mse_loss(model(x).float(), x.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
"""


@rule.check
def inside_the_block(tape: Tape) -> Iterator[Finding]:
    for _, backwards in cadence(tuple(tape.of_kind(EventKind.BACKWARD))):
        # In source a function that goes one step may be all there is to see of a training.
        enough = len(backwards) > 1 or (tape.source is Source.STATIC and EventKind.STEP in tape.kinds)
        if enough and all(event.attrs.get("autocast") for event in backwards):
            yield rule.finding(
                "backward() runs under autocast, which is meant for the forward and the loss",
                backwards[0],
                fix="end the autocast block after the loss",
                severity=Severity.INFO if tape.source is Source.STATIC else None,
                confidence=0.9,
            )
