"""The loss is NaN or infinite while weights and earlier gradients are sound.

## What it finds
A loss that is not finite when it is sent backward, with finite weights: the forward pass or the loss
itself made it. The first operation that did is named with its line.

## Why it hurts
Its gradients are NaN in every parameter it reaches, and one update with them ends the run.

## What to do
Keep the named operation inside its domain: `log(x.clamp_min(1e-12))`, `x / y.clamp_min(eps)`,
`log_softmax` in place of `softmax().log()`, `logsumexp` in place of `exp().sum().log()`. If the data it
was given is not finite, clean the data.

## Not the fix
Lowering the learning rate: the operation fails whatever the step. `nan_to_num` on the loss, which
replaces the number and keeps the NaN gradient.

## Known limits
Where the graph does not keep the values it was computed from (compiled or checkpointed models), the
operation is not named.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts.source import Source
from gradclinic.facts.training import NonFinite, Training
from gradclinic.findings import Finding, Kind, Severity
from gradclinic.rules._rule import Rule
from gradclinic.rules.precision._origin import origin_of, place_of

rule = Rule(
    "GC506",
    "nonfinite-loss",
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
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(30):
    x = torch.randn(32, 4)
    if step == 20:
        x[0] = float("inf")
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), torch.randn(32, 3).argmax(1))
    loss.backward()
    optimizer.step()
"""

GOOD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(30):
    x = torch.randn(32, 4)
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), x[:, :3].argmax(1))
    loss.backward()
    optimizer.step()
"""

GOOD_GUARDED = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(40):
    x = torch.randn(32, 4)
    if step == 20:
        x[0] = float("inf")
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), x[:, :3].argmax(1))
    if not torch.isfinite(loss):
        continue
    loss.backward()
    optimizer.step()
"""


@rule.check
def loss_broke(training: Training) -> Iterator[Finding]:
    found = training.breakdown
    if found is None or found.what is not NonFinite.LOSS:
        return
    origin = found.origin
    yield rule.finding(
        f"the loss is not finite at update {found.index}" + (f": {origin.because}" if origin else ""),
        place_of(found),
        evidence={
            **origin_of(origin),
            "weights": "finite",
            "losses before": " ".join(f"{loss:.3g}" for _, loss in training.losses[-3:]) or "none",
        },
        fix="keep that operation inside its domain, or clean what it is given",
        confidence=0.95,
        subject=training.optimizer.id,
    )
