"""The loss jumps far out of its recent range.

## What it finds
A loss at least ten times that of the last twenty updates and above where the run began, with a
gradient norm at least ten times the usual at the same update. It is advice when the loss comes back,
a warning when it does not.

## Why it hurts
One batch throws the weights back to where training began, or further. Adam's averages carry the shock
for hundreds of updates.

## What to do
Clip the gradient norm at a little above its usual value; look at the batch of that update; lengthen
the warm-up; lower Adam's `beta2` to 0.95 or so, so that the second moment follows faster.

## Not the fix
Dropping every batch with a high loss: hard examples go with them.

## Known limits
Losses that are negative, and runs of fewer than 25 updates, are not judged.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts.source import Source
from gradclinic.facts.training import Training
from gradclinic.findings import Finding, Kind, Severity
from gradclinic.rules._rule import Rule
from gradclinic.rules.health._instability import spike

rule = Rule(
    "GC603",
    "loss-spike",
    Severity.WARNING,
    since="0.1.0",
    sources=(Source.RUNTIME,),
    topic="stability of the loss",
    kind=Kind.SYMPTOM,
)

BAD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(80):
    x = torch.randn(32, 4)
    target = x[:, :1].clone()
    if step == 40:
        target[0] = 3000.0
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), target)
    loss.backward()
    optimizer.step()
"""

GOOD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(80):
    x = torch.randn(4, 4)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x[:, :1] + torch.randn(4, 1))
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
"""


@rule.check
def loss_jumps(training: Training) -> Iterator[Finding]:
    found = spike(training)
    if found is None or training.breakdown is not None:
        return
    times = found.loss / found.usual_loss
    stays = not found.recovered and training.alone
    yield rule.finding(
        f"the loss jumps {times:.0f}-fold at update {found.step.index}"
        + (" and does not come back" if stays else ""),
        training.backward,
        evidence={
            "loss": f"{found.usual_loss:.3g} before, {found.loss:.3g} at the jump",
            "gradient norm": f"{found.usual_norm:.3g} before, {found.step.norm:.3g} at the jump",
            "clipping": "none" if training.clip is None else f"to {found.step.limit}",
        },
        fix=f"clip the gradient norm at about {2 * found.usual_norm:.2g}, twice its usual value",
        confidence=0.85 if stays else 0.6,
        severity=Severity.WARNING if stays else Severity.INFO,
        subject=training.optimizer.id,
    )
