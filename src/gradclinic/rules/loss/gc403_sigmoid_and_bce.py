"""A sigmoid is followed by a binary cross-entropy on probabilities.

## What it finds
`sigmoid` and then `BCELoss` or `binary_cross_entropy`.

## Why it hurts
In float32 a score above about 17 gives a probability of exactly 1. Its logarithm is cut off at
-100 and the gradient through the sigmoid is exactly zero: the sample that is most wrong teaches
nothing. In half precision this happens at scores of 8.

## What to do
Drop the sigmoid and use `BCEWithLogitsLoss`, which computes both in one stable formula.

## Not the fix
Clamping the probabilities: the gradient outside the clamp is still zero.

## Known limits
The pair is correct as long as no wrong answer saturates, so without a run that shows one this is
advice. A right answer that saturates has nothing left to learn.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import LossCall, Source
from gradclinic.findings import Finding, Severity
from gradclinic.rules._rule import Rule
from gradclinic.rules.loss._chain import chain_seen, place_of

rule = Rule(
    "GC403",
    "sigmoid-and-bce",
    Severity.WARNING,
    since="0.1.0",
    sources=(Source.STATIC, Source.RUNTIME),
    topic="loss and its input",
    explains=("GC506", "GC507", "GC206"),
)

BAD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    x = 100 * torch.randn(32, 4)
    y = (x.sum(1, keepdim=True) > 0).float()
    optimizer.zero_grad()
    loss = nn.functional.binary_cross_entropy(torch.sigmoid(model(x)), y)
    loss.backward()
    optimizer.step()
"""

GOOD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    x = torch.randn(32, 4)
    y = (x.sum(1, keepdim=True) > 0).float()
    optimizer.zero_grad()
    loss = nn.functional.binary_cross_entropy_with_logits(model(x), y)
    loss.backward()
    optimizer.step()
"""

SATURATED = 0.01


@rule.check
def two_steps_where_one_is_stable(call: LossCall) -> Iterator[Finding]:
    last = call.last_op
    if call.loss != "binary_cross_entropy" or last is None or last.name != "sigmoid":
        return
    share = call.saturated_share
    seen = share is not None and share >= SATURATED
    evidence: dict[str, object] = {"input of the loss": chain_seen(call)}
    if share is not None:
        evidence["wrong, yet exactly 0 or 1"] = f"up to {share:.1%} of a batch"
    yield rule.finding(
        "sigmoid and binary cross-entropy are computed apart, and wrong outputs saturate to exactly 0 or 1"
        if seen
        else "sigmoid and binary cross-entropy are computed apart; one stable loss does both",
        place_of(call),
        evidence=evidence,
        fix="drop the sigmoid and use binary_cross_entropy_with_logits (BCEWithLogitsLoss)",
        confidence=0.9 if seen else 0.6,
        severity=None if seen else Severity.INFO,
    )
