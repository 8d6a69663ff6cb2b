"""The model is evaluated in train mode.

## What it finds
A pass over data that trains nothing, or a loss computed with gradients off, on a model whose
dropout and batch-norm layers are in train mode.

## Why it hurts
Dropout makes the metric noisy and too low, batch-norm normalises by the batch, and its running
statistics learn from the validation data.

## What to do
`model.eval()` before the evaluation and `model.train()` after it.

## Not the fix
`torch.no_grad()` alone: it stops gradients and changes no layer.

## Known limits
Forwards with gradients off whose result feeds the training (targets, rollouts, samples) are not
evaluations. From source, a model that nobody put into a mode is in the one it was trained in, unless
something out of sight may have changed it; of a model that is handed in, the layers are looked for in
the files it may come from, and those of a library's model are known by the name it is made by, if at all.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import Evaluation, Source
from gradclinic.findings import Finding, Severity
from gradclinic.rules._naming import listed
from gradclinic.rules._rule import Rule
from gradclinic.rules.modes._evaluations import enough, how_many

rule = Rule(
    "GC702",
    "evaluating-in-train-mode",
    Severity.WARNING,
    since="0.1.0",
    sources=(Source.STATIC, Source.RUNTIME),
    topic="train and eval mode",
)

BAD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
for epoch in range(4):
    for step in range(10):
        x = torch.randn(32, 4)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        x = torch.randn(32, 4)
        print(nn.functional.mse_loss(model(x), x.sum(1, keepdim=True)).item())
"""

GOOD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 1))
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
    with torch.no_grad():
        x = torch.randn(32, 4)
        print(nn.functional.mse_loss(model(x), x.sum(1, keepdim=True)).item())
"""

GOOD_SAMPLES_FROM_A_GENERATOR = """
import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits as bce

torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(2, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 4))
critic = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
for_generator = torch.optim.Adam(generator.parameters(), lr=1e-3)
for_critic = torch.optim.Adam(critic.parameters(), lr=1e-3)
for step in range(20):
    with torch.no_grad():
        fake = generator(torch.randn(32, 2))
    for_critic.zero_grad()
    apart = bce(critic(torch.randn(32, 4)), torch.ones(32, 1)) + bce(critic(fake), torch.zeros(32, 1))
    apart.backward()
    for_critic.step()
    for_generator.zero_grad()
    fooled = bce(critic(generator(torch.randn(32, 2))), torch.ones(32, 1))
    fooled.backward()
    for_generator.step()
"""

ENOUGH_FORWARDS = 2


@rule.check
def judged_in_train_mode(seen: Evaluation) -> Iterator[Finding]:
    if not seen.training or not seen.layers or not enough(seen, ENOUGH_FORWARDS):
        return
    yield rule.finding(
        f"{seen.model} is evaluated in train mode",
        seen.where,
        evidence={
            **how_many(seen),
            "taken for an evaluation": seen.evidence,
            "layers that care": listed(seen.layers),
        },
        fix=f"call {seen.model}.eval() before the evaluation and {seen.model}.train() after it",
        confidence=0.88,
        subject=seen.model,
    )
