"""Reentrant checkpointing is given no input that requires a gradient, and cuts the gradient.

## What it finds
`torch.utils.checkpoint.checkpoint(module, x)` in its reentrant form where no input requires a
gradient, although the module has parameters that do: typically the first block of a network.

## Why it hurts
The reentrant form decides by its inputs whether anything has to be differentiated. With none, the
block runs without a graph and its parameters never get a gradient.

## What to do
`checkpoint(module, x, use_reentrant=False)`, which looks at the parameters too.

## Not the fix
`x.requires_grad_()` on the data: it works, and computes a gradient of the data nobody wants.

## Known limits
Functions that are no module are judged by whether parameters get gradients.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import BareCheckpoint, Source
from gradclinic.findings import Finding, Severity
from gradclinic.rules._rule import Rule

rule = Rule(
    "GC214",
    "checkpoint-without-grad-input",
    Severity.ERROR,
    since="0.1.0",
    sources=(Source.RUNTIME,),
    topic="the path of the gradient",
)

BAD = """
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
body, head = nn.Sequential(nn.Linear(4, 16), nn.ReLU()), nn.Linear(16, 1)
optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.02)
for step in range(20):
    x = torch.randn(32, 4)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(head(checkpoint(body, x, use_reentrant=True)), x.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
"""

GOOD = """
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
body, head = nn.Sequential(nn.Linear(4, 16), nn.ReLU()), nn.Linear(16, 1)
optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.02)
for step in range(20):
    x = torch.randn(32, 4)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(head(checkpoint(body, x, use_reentrant=False)), x.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
"""


@rule.check
def cut_by_checkpoint(bare: BareCheckpoint) -> Iterator[Finding]:
    yield rule.finding(
        f"reentrant checkpointing of {bare.module} gets no input that requires a gradient: it trains nothing",
        bare.where,
        evidence={"calls": bare.calls},
        fix="pass use_reentrant=False",
        confidence=0.96,
    )
