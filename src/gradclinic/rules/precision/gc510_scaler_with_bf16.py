"""A gradient scaler is used although the forward runs in bfloat16.

## What it finds
Updates through an enabled `GradScaler` whose forward is under autocast with `bfloat16`.

## Why it hurts
Loss scaling keeps the small gradients of float16 from becoming zero. bfloat16 has the range of
float32, so there is nothing to rescue: the scaler costs a pass over all gradients and a
synchronisation per step, and its growing scale makes steps overflow and be skipped now and then.

## What to do
Leave the scaler out, or build it with `enabled=(dtype is torch.float16)`.

## Not the fix
A smaller `init_scale`.

## Known limits
From source only where the block names its dtype; a scaler that is enabled by a setting is not judged.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import ActorKind, EventKind, Source, Tape, Update, updates
from gradclinic.findings import Finding, Severity
from gradclinic.rules._rule import Rule

rule = Rule(
    "GC510",
    "scaler-with-bf16",
    Severity.INFO,
    since="0.1.0",
    sources=(Source.STATIC, Source.RUNTIME),
    topic="mixed precision",
    needs=(ActorKind.SCALER, EventKind.STEP),
)

BAD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
scaler = torch.amp.GradScaler("cpu")
for step in range(20):
    x = torch.randn(32, 4)
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = nn.functional.mse_loss(model(x).float(), x.sum(1, keepdim=True))
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
"""

GOOD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
precision = torch.bfloat16
scaler = torch.amp.GradScaler("cpu", enabled=precision is torch.float16)
for step in range(20):
    x = torch.randn(32, 4)
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=precision):
        loss = nn.functional.mse_loss(model(x).float(), x.sum(1, keepdim=True))
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
"""


@rule.check
def nothing_to_rescue(tape: Tape) -> Iterator[Finding]:
    for optimizer in tape.optimizers:
        scaled = [update for update in updates(tape, optimizer) if _scaled_bfloat16(update)]
        if len(scaled) < 2:
            continue
        scaler = tape.actors.get(scaled[0].step.attrs["scaler"])
        if scaler is None or scaler.built is None or scaler.attrs.get("enabled", True) is not True:
            continue
        yield rule.finding(
            f"{scaler.name} scales losses that were computed in bfloat16, which needs no scaling",
            scaler.built,
            fix="leave the scaler out, or enable it for float16 only",
            confidence=0.9,
            subject=scaler.id,
        )
        return


def _scaled_bfloat16(update: Update) -> bool:
    """Every forward of the update was in bfloat16, and its step went through a scaler."""
    precisions = {event.attrs.get("precision") for event in update.of_kind(EventKind.FORWARD)}
    return precisions == {"bfloat16"} and bool(update.step.attrs.get("scaler"))
