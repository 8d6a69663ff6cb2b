"""Weight decay is applied to normalisation weights and biases too.

## What it finds
A parameter group with weight decay that holds normalisation layers beside weight matrices.

## Why it hurts
Decay pulls a normalisation scale towards zero although it multiplies an already normalised value;
it regularises nothing and can slow training. Biases gain nothing from decay either.

## What to do
Two groups, one with decay for tensors of two or more axes, one without for the rest:

    decay = [p for p in model.parameters() if p.dim() >= 2]
    plain = [p for p in model.parameters() if p.dim() < 2]
    AdamW([{"params": decay, "weight_decay": 0.1}, {"params": plain, "weight_decay": 0.0}])

## Not the fix
Turning weight decay off altogether.

## Known limits
Advice: many good recipes decay everything.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import Census, Source
from gradclinic.findings import Finding, Severity
from gradclinic.rules._naming import listed
from gradclinic.rules._rule import Rule

rule = Rule(
    "GC305",
    "decay-on-norms-and-biases",
    Severity.INFO,
    since="0.1.0",
    sources=(Source.RUNTIME,),
    topic="optimizer settings",
)

BAD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.1)
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
model = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.ReLU(), nn.Linear(8, 1))
decay = [p for p in model.parameters() if p.dim() >= 2]
plain = [p for p in model.parameters() if p.dim() < 2]
groups = [{"params": decay, "weight_decay": 0.1}, {"params": plain, "weight_decay": 0.0}]
optimizer = torch.optim.AdamW(groups, lr=1e-3)
for step in range(20):
    x = torch.randn(32, 4)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
"""

STRONG_DECAY = 0.05


@rule.check
def decayed_with_the_rest(census: Census) -> Iterator[Finding]:
    by_name = {p.name: p for p in census.parameters}
    for holder in census.holders:
        for group in holder.groups:
            if group.weight_decay < STRONG_DECAY:
                continue
            members = [by_name[name] for name in group.parameters if name in by_name]
            norms = [p for p in members if "Norm" in p.owner and len(p.shape) == 1]
            if not norms or not any(len(p.shape) >= 2 for p in members):
                continue
            yield rule.finding(
                f"{holder.name} decays normalisation weights and biases like weight matrices",
                holder.built,
                evidence={"weight_decay": group.weight_decay, "decayed": listed(p.name for p in norms)},
                fix="put tensors of fewer than two axes into a group with weight_decay=0",
                confidence=0.7,
                subject=holder.id,
            )
            break
