"""Gradients are clipped after the step that used them.

## What it finds
A call that clips gradients (`clip_grad_norm_`, `clip_grad_value_`) which runs after
`optimizer.step()` and before the next `backward()`.

## Why it hurts
The step has already moved the weights with the unclipped gradients, and the gradients that are
clipped are cleared before anything reads them. The run has no protection at all, although the
code says it has.

## What to do
Move the clip between `backward()` and `step()`:

    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()

With a `GradScaler`, call `scaler.unscale_(optimizer)` before the clip.

## Not the fix
Lowering `max_norm`: the call has no effect at any value. Lowering the learning rate because the
loss still spikes: the spikes come from the gradients that were never clipped.

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
    "GC109",
    "clip-after-step",
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
    loss.backward()
    optimizer.step()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
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
def clipped_too_late(tape: Tape) -> Iterator[Finding]:
    for optimizer in tape.optimizers:
        for clip, before in misplaced_clips(tape, optimizer, after=EventKind.STEP):
            yield rule.finding(
                f"gradients are clipped after {tape.name(optimizer)}.step() has used them",
                clip,
                evidence={
                    "order seen": order_seen(
                        [*before, clip], EventKind.BACKWARD, EventKind.STEP, EventKind.CLIP
                    )
                },
                fix=moved_before_step("move the clip up, between backward() and step()", tape, clip, before),
                confidence=0.98,
                subject=optimizer,
            )
