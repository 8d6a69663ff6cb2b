"""Gradients are clipped before there are any.

## What it finds
A clip that runs after the gradients were cleared, or before the first backward of the iteration,
so that it acts on nothing.

## Why it hurts
The gradients that the step uses are computed after the clip and are never limited.

## What to do
Clip between `backward()` and `step()`:

    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()

## Not the fix
Lowering `max_norm`: nothing is there to be limited.

## Known limits
A clip that sits in code which cannot be followed is not judged.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import EventKind, Source, Tape
from gradclinic.findings import Finding, Severity
from gradclinic.rules._rule import Rule
from gradclinic.rules.order._clips import misplaced_clips, moved_before_step
from gradclinic.rules.order._wording import order_seen

rule = Rule(
    "GC110",
    "clip-before-backward",
    Severity.ERROR,
    since="0.1.0",
    sources=(Source.STATIC, Source.RUNTIME),
    topic="clip order",
    needs=(EventKind.CLIP, EventKind.STEP),
    explains=("GC601", "GC603", "GC307", "GC506", "GC507", "GC508"),
)

BAD = """
import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(20):
    x = torch.randn(8, 4)
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    optimizer.zero_grad()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    loss.backward()
    optimizer.step()
"""

GOOD = """
import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(20):
    x = torch.randn(8, 4)
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
"""


@rule.check
def clipped_too_early(tape: Tape) -> Iterator[Finding]:
    for optimizer in tape.optimizers:
        if not any(e.kind is EventKind.BACKWARD for e in tape.timeline(optimizer)):
            continue  # too early for what? Its backward was not recognised, or is missing altogether
        for clip, before in misplaced_clips(tape, optimizer, after=EventKind.ZERO_GRAD):
            following = [e for e in tape.timeline(optimizer) if e.index > clip.index]
            yield rule.finding(
                f"gradients of {tape.name(optimizer)} are clipped before backward() has computed them",
                clip,
                evidence={
                    "order seen": order_seen(
                        [*before[-2:], clip, *following[:8]],
                        EventKind.ZERO_GRAD,
                        EventKind.CLIP,
                        EventKind.BACKWARD,
                        EventKind.STEP,
                    )
                },
                fix=moved_before_step(
                    "move the clip down, between backward() and step()", tape, clip, following
                ),
                confidence=0.97,
                subject=optimizer,
            )
