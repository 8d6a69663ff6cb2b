"""Loaded weights and a fresh part share one learning rate.

## What it finds
A group that holds parameters filled from a state_dict and others at their random start.

## Why it hurts
A rate that suits the new part tears up what the loaded one knows; a rate that suits the loaded
one leaves the new part far behind.

## What to do
Two groups, with a rate for the loaded part five to ten times smaller; or train the new part alone
for a while, and then all.

## Not the fix
A single small rate for everything, and many more epochs.

## Known limits
Advice: with enough data one rate can do.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import Census, Source
from gradclinic.findings import Finding, Severity
from gradclinic.rules._naming import listed, modules_of
from gradclinic.rules._rule import Rule

rule = Rule(
    "GC311",
    "one-rate-for-pretrained-and-new",
    Severity.INFO,
    since="0.1.0",
    sources=(Source.RUNTIME,),
    topic="optimizer settings",
)

BAD = """
import torch
from torch import nn

torch.manual_seed(0)
pretrained = nn.Sequential(nn.Linear(4, 8), nn.ReLU()).state_dict()
backbone = nn.Sequential(nn.Linear(4, 8), nn.ReLU())
backbone.load_state_dict(pretrained)
model = nn.Sequential(backbone, nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
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
pretrained = nn.Sequential(nn.Linear(4, 8), nn.ReLU()).state_dict()
backbone = nn.Sequential(nn.Linear(4, 8), nn.ReLU())
backbone.load_state_dict(pretrained)
head = nn.Linear(8, 1)
groups = [{"params": backbone.parameters(), "lr": 0.002}, {"params": head.parameters(), "lr": 0.02}]
optimizer = torch.optim.SGD(groups)
for step in range(20):
    x = torch.randn(32, 4)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(head(backbone(x)), x.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
"""


@rule.check
def one_rate_for_both(census: Census) -> Iterator[Finding]:
    by_name = {p.name: p for p in census.parameters}
    for holder in census.holders:
        for group in holder.groups:
            members = [by_name[name] for name in group.parameters if name in by_name]
            trained = [p for p in members if p.trainable]
            loaded = [p for p in trained if p.loaded]
            fresh = [p for p in trained if not p.loaded]
            if loaded and fresh:
                yield rule.finding(
                    f"loaded weights and the new {listed(modules_of(fresh), most=2)} share one learning rate",
                    holder.built,
                    evidence={"learning rate": group.lr, "loaded": listed(modules_of(loaded))},
                    fix="give the loaded part a group of its own with a smaller rate",
                    confidence=0.6,
                    subject=holder.id,
                )
