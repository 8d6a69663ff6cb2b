"""The loss is finite and its gradient is not.

## What it finds
NaN or infinite gradients behind a finite loss, with the operation whose slope is infinite at a value it
was given: `sqrt` or a fractional power at 0, `acos` at 1, `std` of equal values, a division that
`torch.where` masks in the forward pass only.

## Why it hurts
One update with such a gradient makes every weight NaN. The loss of the same step looks healthy, so the
next step is blamed.

## What to do
Move the value off the edge before the operation: `(x + 1e-12).sqrt()`, `x.clamp(-1 + eps, 1 - eps)`; and
mask the input, not the result: `torch.where(ok, x, 1.0).sqrt()`.

## Not the fix
Clipping: the norm of a NaN is NaN, and `clip_grad_norm_` spreads it to all gradients. Masking the result
with `torch.where`: the gradient of the unused branch is `0 * inf`, which is NaN.

## Known limits
Updates a loss scaler skips are its business (GC505). An operation is named with certainty when the
graph of that very update was looked at, else as the only candidate.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts.source import Source
from gradclinic.facts.training import NonFinite, Training
from gradclinic.findings import Finding, Kind, Severity
from gradclinic.rules._rule import Rule
from gradclinic.rules.precision._origin import origin_of, place_of

rule = Rule(
    "GC507",
    "nonfinite-gradient",
    Severity.ERROR,
    since="0.1.0",
    sources=(Source.RUNTIME,),
    topic="finite numbers",
    kind=Kind.SYMPTOM,
)

BAD = """
import torch
from torch import nn

torch.manual_seed(0)
words = nn.Embedding(100, 8)
head = nn.Linear(8, 100)
words.weight.register_hook(lambda gradient: gradient / gradient.norm(dim=1, keepdim=True))
optimizer = torch.optim.SGD([*words.parameters(), *head.parameters()], lr=0.01)
for step in range(20):
    tokens = torch.randint(0, 100, (16,))
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(head(words(tokens)), tokens)
    loss.backward()
    optimizer.step()
"""

GOOD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(3, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x = torch.randn(10, 3)
wanted = torch.cdist(x, x)
for step in range(20):
    optimizer.zero_grad()
    y = model(x)
    distances = (y[:, None] - y[None]).pow(2).sum(-1).add(1e-12).sqrt()
    loss = nn.functional.mse_loss(distances, wanted)
    loss.backward()
    optimizer.step()
"""


@rule.check
def gradient_broke(training: Training) -> Iterator[Finding]:
    found = training.breakdown
    if found is None or found.what is not NonFinite.GRADIENT:
        return
    named = found.tensors
    where = f"{named[0]} and {len(named) - 1} more" if len(named) > 1 else "".join(named)
    loss = "unknown" if found.loss is None else f"{found.loss:.4g}"
    yield rule.finding(
        f"the gradient of {where} is not finite at update {found.index}, though the loss is {loss}",
        place_of(found),
        evidence={**origin_of(found.origin), "parameters": ", ".join(named[:5])},
        fix="keep the operation off the point where its slope is infinite: add a small constant inside it",
        confidence=0.95,
        subject=training.optimizer.id,
    )
