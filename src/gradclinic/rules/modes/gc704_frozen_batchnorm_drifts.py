"""The running statistics of a frozen batch-norm keep moving.

## What it finds
A normalisation layer whose weights were frozen for the whole run and never written to, while its
running mean and variance are updated batch after batch because it is in train mode.

## Why it hurts
`requires_grad=False` stops gradients, not statistics. The frozen part changes what it computes
with every batch, and what it was trained to compute is lost; in train mode it also normalises by
the batch instead of by what it learned.

## What to do
Put the frozen layers in eval mode, and again after each `model.train()`, which turns it off:

    model.train()
    for layer in frozen.modules():
        if isinstance(layer, nn.modules.batchnorm._BatchNorm):
            layer.eval()

## Not the fix
`momentum=0`: the layer still normalises by the batch.

## Known limits
A copy that follows another model (a momentum encoder) has weights that change, and is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import Census, Source
from gradclinic.findings import Finding, Severity
from gradclinic.rules._naming import listed
from gradclinic.rules._rule import Rule

rule = Rule(
    "GC704",
    "frozen-batchnorm-drifts",
    Severity.WARNING,
    since="0.1.0",
    sources=(Source.RUNTIME,),
    topic="frozen parts",
)

BAD = """
import torch
from torch import nn

torch.manual_seed(0)
backbone = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU())
backbone.requires_grad_(False)
model = nn.Sequential(backbone, nn.Linear(8, 1))
optimizer = torch.optim.SGD(model[1].parameters(), lr=0.02)
model.train()
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
backbone = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU())
backbone.requires_grad_(False)
model = nn.Sequential(backbone, nn.Linear(8, 1))
optimizer = torch.optim.SGD(model[1].parameters(), lr=0.02)
model.train()
backbone.eval()
for step in range(20):
    x = torch.randn(32, 4)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
"""

GOOD_MOMENTUM_ENCODER = """
import copy

import torch
from torch import nn

torch.manual_seed(0)
online = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 4))
target = copy.deepcopy(online)
target.requires_grad_(False)
optimizer = torch.optim.SGD(online.parameters(), lr=0.02)
for step in range(20):
    x = torch.randn(32, 4)
    with torch.no_grad():
        goal = target(x + 0.1 * torch.randn(32, 4))
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(online(x), goal)
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for kept, new in zip(target.parameters(), online.parameters()):
            kept.lerp_(new, 0.1)
"""

ENOUGH_UPDATES = 3


@rule.check
def statistics_move(census: Census) -> Iterator[Finding]:
    drifting = [norm for norm in census.norms if norm.frozen and norm.updates >= ENOUGH_UPDATES]
    if not drifting:
        return
    yield rule.finding(
        f"the weights of {listed((n.name for n in drifting), most=2)} are frozen, its statistics move",
        drifting[0].built,
        evidence={"frozen, in train mode": listed(n.name for n in drifting), "updates": drifting[0].updates},
        fix="call eval() on the frozen normalisation layers after each model.train()",
        confidence=0.92,
        subject=drifting[0].name,
    )
