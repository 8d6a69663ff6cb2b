"""An update made a weight NaN or infinite although its gradient was sound.

## What it finds
Weights that are not finite after an update whose loss and gradients were: the optimizer's own
arithmetic made them.

## Why it hurts
Everything computed from that weight is NaN from then on.

## What to do
Look at what the update multiplies: a learning rate that is infinite or far too large, Adam's `eps` of
zero on a gradient of zero, weights kept in float16 that outgrow its range, a schedule that divides by
zero.

## Not the fix
Clipping: the gradients are finite. `nan_to_num` on the weights.

## Known limits
Weights are looked at on the first updates, now and then later, and when a loss is not finite; the update
named is the last one before they were seen to be broken.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts.source import Source
from gradclinic.facts.training import NonFinite, Training
from gradclinic.findings import Finding, Kind, Severity
from gradclinic.rules._rule import Rule

rule = Rule(
    "GC508",
    "nonfinite-parameter",
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
model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(30):
    x = torch.randn(32, 4)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x[:, :1])
    loss.backward()
    remaining = 12 - step
    optimizer.param_groups[0]["lr"] = 0.01 / remaining if remaining else float("inf")
    optimizer.step()
"""

GOOD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(30):
    x = torch.randn(32, 4)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x[:, :1])
    loss.backward()
    optimizer.param_groups[0]["lr"] = 0.1 / (step + 10)
    optimizer.step()
"""


@rule.check
def parameter_broke(training: Training) -> Iterator[Finding]:
    found = training.breakdown
    if found is None or found.what is not NonFinite.PARAMETER:
        return
    named = found.tensors
    where = f"{named[0]} and {len(named) - 1} more" if len(named) > 1 else "".join(named)
    step = next((step for step in training.steps if step.index == found.index), None)
    told = {}
    measured = step is not None and step.measured
    if step is not None:
        if measured:
            told["gradient norm of that update"] = f"{step.norm:.3g}"
        told["learning rate"] = ", ".join(f"{rate:g}" for rate in step.rates)
    yield rule.finding(
        f"update {found.index} made {where or 'a weight'} not finite"
        + (" from a finite gradient" if measured else ", and the loss before it was finite"),
        found.where,
        evidence={"parameters": ", ".join(named[:5]) or "unknown", **told},
        fix="look at the learning rate, at eps, and at the precision the weights are kept in",
        confidence=0.9,
        subject=training.optimizer.id,
    )
