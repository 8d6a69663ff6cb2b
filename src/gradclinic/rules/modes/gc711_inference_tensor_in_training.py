"""A tensor made under inference_mode is used in training.

## What it finds
The error "Inference tensors cannot be saved for backward", explained.

## Why it hurts
`torch.inference_mode()` makes tensors that autograd may never record, not even as inputs of a
layer that trains. Features computed once under it cannot feed a trainable head.

## What to do
Compute them under `torch.no_grad()`, or `clone()` them outside the block before use.

## Not the fix
`requires_grad_()` on such a tensor: it is refused as well.

## Known limits
The line that made the tensor is not known, only the one that used it.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import Crash, CrashKind, Source
from gradclinic.findings import Finding, Severity
from gradclinic.rules._rule import Rule

rule = Rule(
    "GC711",
    "inference-tensor-in-training",
    Severity.ERROR,
    since="0.1.0",
    sources=(Source.RUNTIME,),
    topic="the path of the gradient",
)

BAD = """
import torch
from torch import nn

torch.manual_seed(0)
backbone, head = nn.Linear(4, 8), nn.Linear(8, 1)
optimizer = torch.optim.SGD(head.parameters(), lr=0.05)
for step in range(20):
    x = torch.randn(32, 4)
    with torch.inference_mode():
        features = torch.relu(backbone(x))
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(head(features), x.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
"""

GOOD = """
import torch
from torch import nn

torch.manual_seed(0)
backbone, head = nn.Linear(4, 8), nn.Linear(8, 1)
optimizer = torch.optim.SGD(head.parameters(), lr=0.05)
for step in range(20):
    x = torch.randn(32, 4)
    with torch.no_grad():
        features = torch.relu(backbone(x))
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(head(features), x.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
"""


@rule.check
def refused_by_autograd(crash: Crash) -> Iterator[Finding]:
    if crash.kind is CrashKind.INFERENCE:
        yield rule.finding(
            "a tensor made under inference_mode cannot take part in training",
            crash.where,
            evidence={"error": crash.message},
            fix="make it under torch.no_grad(), or clone() it outside inference_mode",
            confidence=0.97,
        )
