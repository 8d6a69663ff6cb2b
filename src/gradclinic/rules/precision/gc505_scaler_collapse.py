"""The loss scale keeps falling and updates are silently skipped.

## What it finds
An AMP scaler that skips most of the latest updates, at least eight in a row, because the gradients are
not finite at any scale.

## Why it hurts
A skipped update changes nothing: the run looks alive and learns nothing. The scale halves each time,
until gradients that were fine vanish in half precision.

## What to do
The gradients themselves are at fault, not the scale. Find what makes them infinite: a loss computed in
half precision (take it out of autocast, or cast to float32), a division or logarithm at the edge of its
domain, or use bfloat16, which has the range of float32 and needs no scaler.

## Not the fix
A lower `init_scale`, or a larger `growth_interval`: the scale finds its level by itself when there is
one. Dropping the scaler and keeping float16.

## Known limits
A few skipped updates at the start are how the scaler finds its scale, and are not reported.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile

from gradclinic.facts.source import Source
from gradclinic.facts.training import NonFinite, Training
from gradclinic.findings import Finding, Severity
from gradclinic.rules._rule import Rule
from gradclinic.rules.precision._origin import origin_of

rule = Rule(
    "GC505",
    "scaler-collapse",
    Severity.ERROR,
    since="0.1.0",
    sources=(Source.RUNTIME,),
    topic="loss scaling",
    explains=("GC612", "GC115"),
)

BAD = """
import torch
from torch import nn

torch.manual_seed(0)
words = nn.Embedding(100, 8)
head = nn.Linear(8, 100)
words.weight.register_hook(lambda gradient: gradient / gradient.norm(dim=1, keepdim=True))
optimizer = torch.optim.SGD([*words.parameters(), *head.parameters()], lr=0.01)
scaler = torch.amp.GradScaler("cpu")
for step in range(60):
    tokens = torch.randint(0, 100, (16,))
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(head(words(tokens)), tokens)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
"""

GOOD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**126)
for step in range(60):
    x = torch.randn(16, 8)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
"""

IN_A_ROW = 8
LATEST = 20


@rule.check
def scale_falls(training: Training) -> Iterator[Finding]:
    if training.breakdown is not None and training.breakdown.what is NonFinite.LOSS:
        return
    latest = training.steps[-LATEST:]
    in_a_row = sum(1 for _ in takewhile(lambda step: step.skipped, reversed(training.steps)))
    skipped = sum(step.skipped for step in latest)
    if in_a_row < IN_A_ROW or len(latest) < LATEST or skipped < 0.75 * LATEST:
        return
    scales = [step.scale for step in training.steps if step.scale is not None]
    total = training.taken + training.skipped
    yield rule.finding(
        f"the scaler skipped {training.skipped} of {total} updates, the last {in_a_row} in a row: "
        "the gradients are not finite at any scale",
        (training.suspect.where if training.suspect else None) or training.backward,
        evidence={
            "scale": f"{scales[0]:g} at first, {scales[-1]:g} at the end",
            "updates made": training.taken,
            **origin_of(training.suspect),
        },
        fix="find what makes the gradients infinite: compute the loss in float32, or use bfloat16",
        confidence=0.95,
        subject=training.optimizer.id,
    )
