"""The loss is summed over the batch, so the gradient grows with the batch size.

## What it finds
A loss with `reduction="sum"` that trains.

## Why it hurts
Twice the batch is twice the gradient: a learning rate or clipping threshold that suits one batch
size does not suit another, and the last, smaller batch of an epoch gets a smaller step.

## What to do
`reduction="mean"`, or divide the sum by the number of elements that count.

## Not the fix
A smaller learning rate: it fits one batch size only.

## Known limits
Advice: sums are right for likelihoods over a fixed number of terms.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import LossCall, Source
from gradclinic.findings import Finding, Severity
from gradclinic.rules._rule import Rule

rule = Rule(
    "GC408",
    "sum-reduction",
    Severity.INFO,
    since="0.1.0",
    sources=(Source.STATIC, Source.RUNTIME),
    topic="loss and its target",
)

BAD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
for step in range(20):
    x = torch.randn(32, 4)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True), reduction="sum")
    loss.backward()
    optimizer.step()
"""

GOOD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
for step in range(20):
    x = torch.randn(32, 4)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True), reduction="sum") / len(x)
    loss.backward()
    optimizer.step()
"""


@rule.check
def grows_with_the_batch(call: LossCall) -> Iterator[Finding]:
    if call.reduction == "sum" and call.trains and not call.divided:
        yield rule.finding(
            f"{call.loss} is summed: the size of the gradient follows the batch size",
            call.where,
            evidence={"reduction": "sum", "input": call.input_shape},
            fix='use reduction="mean", or divide by the number of elements',
            confidence=0.7,
        )
