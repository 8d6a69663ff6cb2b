"""The clipping threshold never acts although the run is unstable.

## What it finds
A `clip_grad_norm_` that clips no update before the loss jumps or the gradients explode.

## Why it hurts
The protection is there in the code and absent in effect.

## What to do
Set `max_norm` from the measured norms, a little above their usual value; the finding suggests one.

## Not the fix
A very small threshold, which clips every update (GC604).

## Known limits
A stable run may have a threshold that never acts; that is what it is for, and nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts.source import Source
from gradclinic.facts.training import Training
from gradclinic.findings import Finding, Severity
from gradclinic.rules._rule import Rule
from gradclinic.rules.health._advice import max_norm
from gradclinic.rules.health._instability import spike

rule = Rule(
    "GC605",
    "clipping-never",
    Severity.INFO,
    since="0.1.0",
    sources=(Source.RUNTIME,),
    topic="clipping threshold",
    explains=("GC603",),
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
    nn.utils.clip_grad_norm_(model.parameters(), 1e9)
    optimizer.step()
"""

GOOD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(80):
    x = torch.randn(32, 4)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x[:, :1])
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 100.0)
    optimizer.step()
"""


@rule.check
def threshold_out_of_reach(training: Training) -> Iterator[Finding]:
    steps = [step for step in training.taken_steps if step.limit]
    if training.value_clip or len(steps) < 20 or any(step.clipped for step in steps):
        return
    found = spike(training)
    if found is None:
        return
    advised = max_norm(training)
    yield rule.finding(
        f"max_norm={steps[-1].limit:g} never clips, not even the jump at update {found.step.index}",
        training.clip,
        evidence={
            "gradient norm": advised.spread,
            "at the jump": f"{found.step.norm:.3g}",
        },
        fix=f"max_norm={2 * found.usual_norm:.2g} would leave ordinary updates alone and stop the jump",
        confidence=0.7,
        subject=training.optimizer.id,
    )
