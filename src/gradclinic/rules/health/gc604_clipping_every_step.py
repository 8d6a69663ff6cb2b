"""Every update is clipped, to far below what its gradient was.

## What it finds
A clipping threshold that at least 95 % of updates exceed tenfold. As advice only where the run still
trains; as a warning where what is left of the gradients moves no weight and the loss stands still.

## Why it hurts
Every gradient then has the same length, whatever the data said: with plain SGD the learning rate is
really `lr * max_norm / norm`, and a threshold that is far too low stops training altogether.

## What to do
Set `max_norm` from the norms that were measured: a little above their usual value, so that it acts on
the exceptions. The finding suggests one.

## Not the fix
Raising the learning rate until the clipped updates are large enough: it then depends on `max_norm`, and
both must be tuned together for ever.

## Known limits
Transformers are often trained with `max_norm=1` and clipped at every update of the warm-up; under Adam
this does little harm and is at most mentioned.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite
from statistics import median

from gradclinic.facts.source import Source
from gradclinic.facts.training import Training
from gradclinic.findings import Finding, Severity
from gradclinic.rules._rule import Rule
from gradclinic.rules.health._advice import max_norm
from gradclinic.rules.health._progress import Verdict, progress

rule = Rule(
    "GC604",
    "clipping-every-step",
    Severity.WARNING,
    since="0.1.0",
    sources=(Source.RUNTIME,),
    topic="clipping threshold",
    explains=("GC306", "GC602", "GC612"),
)

BAD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(80):
    x = torch.randn(64, 8)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
    optimizer.step()
"""

GOOD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(80):
    x = torch.randn(64, 8)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
"""

FEWEST = 30
OVER = 10.0
STARVED = 1e-4
"""An update that moves a weight by less than this share of its size, where 1e-3 is usual."""


@rule.check
def always_clipped(training: Training) -> Iterator[Finding]:
    steps = [s for s in training.taken_steps if s.limit and isfinite(s.norm)]
    if len(steps) < FEWEST or training.value_clip or training.breakdown is not None:
        return
    clipped = [step for step in steps if step.clipped]
    excess = median(step.norm / step.limit for step in steps if step.limit)
    if len(clipped) < 0.95 * len(steps) or excess < OVER:
        return
    outcome = progress(training)
    ratios = [ratio for _, ratio in training.typical_ratios]
    starves = outcome.verdict is Verdict.FLAT and bool(ratios) and median(ratios) < STARVED
    advised = max_norm(training)
    yield rule.finding(
        f"{len(clipped)} of {len(steps)} updates are clipped, to 1/{excess:.0f} of their gradient"
        + (", and what is left moves nothing" if starves else ""),
        training.clip,
        evidence={
            "gradient norm before clipping": advised.spread,
            "max_norm": f"{steps[-1].limit:g}",
            "update to weight": f"{median(ratios):.1e}" if ratios else "not measured",
            "loss": outcome.story,
        },
        fix=f"max_norm={advised.value:.2g} would clip one update in ten",
        confidence=0.9 if starves else 0.5,
        severity=Severity.WARNING if starves else Severity.INFO,
        subject=training.optimizer.id,
    )
