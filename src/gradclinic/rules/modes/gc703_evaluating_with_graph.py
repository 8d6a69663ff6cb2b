"""An evaluation builds graphs that nothing uses.

## What it finds
Forwards of a trained model with gradients on that no backward follows: several in a row in eval
mode, or a whole pass over data that trains nothing. It points at the first of these forwards.

## Why it hurts
Every activation is kept for a backward that never comes: memory for nothing, often the reason an
evaluation needs a smaller batch than training, and time for recording it.

## What to do
`with torch.no_grad():` around the evaluation, or `@torch.inference_mode()` on its function.

## Not the fix
`model.eval()` alone: it changes dropout and batch-norm, and keeps the graphs.

## Known limits
Evaluations that need gradients themselves, such as forces, are left alone. A note, not a warning,
for a function of which no caller is in sight: that one may switch gradients off. A note, too, for one
forward on all of the data, as graph networks are evaluated by: it keeps no more than a step of training.
Told is the first forward of the evaluation; of a helper that training calls too, the call of it.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import Evaluation, Source
from gradclinic.findings import Finding, Severity
from gradclinic.rules._rule import Rule
from gradclinic.rules.modes._evaluations import enough, how_many

rule = Rule(
    "GC703",
    "evaluating-with-graph",
    Severity.WARNING,
    since="0.1.0",
    sources=(Source.STATIC, Source.RUNTIME),
    topic="train and eval mode",
    explains=("GC613",),
)

BAD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
for epoch in range(4):
    model.train()
    for step in range(10):
        x = torch.randn(32, 4)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
        loss.backward()
        optimizer.step()
    model.eval()
    total = 0.0
    for step in range(5):
        x = torch.randn(32, 4)
        total += nn.functional.mse_loss(model(x), x.sum(1, keepdim=True)).item()
    print(total / 5)
"""

GOOD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
for epoch in range(4):
    model.train()
    for step in range(10):
        x = torch.randn(32, 4)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
        loss.backward()
        optimizer.step()
    model.eval()
    total = 0.0
    with torch.no_grad():
        for step in range(5):
            x = torch.randn(32, 4)
            total += nn.functional.mse_loss(model(x), x.sum(1, keepdim=True)).item()
    print(total / 5)
"""

GOOD_FORCES = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Dropout(0.1), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
for epoch in range(3):
    model.train()
    for step in range(10):
        x = torch.randn(32, 3)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
        loss.backward()
        optimizer.step()
    model.eval()
    for step in range(5):
        position = torch.randn(32, 3, requires_grad=True)
        force = -torch.autograd.grad(model(position).sum(), position)[0]
    print(force.norm().item())
"""

ENOUGH_FORWARDS = 3


@rule.check
def graphs_for_nothing(seen: Evaluation) -> Iterator[Finding]:
    if not seen.builds_graph or not enough(seen, ENOUGH_FORWARDS):
        return
    evidence = {**how_many(seen), "taken for an evaluation": seen.evidence}
    if seen.set_at is not None:
        evidence["put in this mode"] = str(seen.set_at)
    yield rule.finding(
        f"the evaluation of {seen.model} builds graphs that no backward uses",
        seen.where,
        evidence=evidence,
        fix="put the evaluation under torch.no_grad()",
        severity=None if seen.called_in_sight and not seen.at_once else Severity.INFO,
        confidence=0.88 if seen.called_in_sight else 0.6,
        subject=seen.model,
    )
