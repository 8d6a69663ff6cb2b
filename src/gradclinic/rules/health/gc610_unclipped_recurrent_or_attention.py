"""A recurrent or attention model trains with spiking gradients, and nothing clips them.

## What it finds
A model with recurrent or multi-head attention layers whose gradient norm is many times its usual size
on several updates, in a loop without clipping.

## Why it hurts
Products over time or over attention weights make rare, very large gradients. One of them undoes many
ordinary updates.

## What to do
`clip_grad_norm_(model.parameters(), max_norm)` between `backward()` and `step()`, with a limit a little
above the usual norm.

## Not the fix
A smaller learning rate: the ordinary updates then do less too.

## Known limits
Layers of `torch.nn` are recognised, those written by hand are not.
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

rule = Rule(
    "GC610",
    "unclipped-recurrent-or-attention",
    Severity.INFO,
    since="0.1.0",
    sources=(Source.RUNTIME,),
    topic="clipping threshold",
)

BAD = """
import torch
from torch import nn

torch.manual_seed(0)
model, head = nn.GRU(4, 16, batch_first=True), nn.Linear(16, 1)
optimizer = torch.optim.Adam([*model.parameters(), *head.parameters()], lr=1e-3)
for step in range(60):
    x = torch.randn(32, 8, 4)
    y = x.sum((1, 2))[:, None] * (3 if step % 9 == 8 else 0.5)
    optimizer.zero_grad()
    loss = nn.functional.l1_loss(head(model(x)[0][:, -1]), y, reduction="none").square().mean()
    loss.backward()
    optimizer.step()
"""

GOOD = """
import torch
from torch import nn

torch.manual_seed(0)
model, head = nn.GRU(4, 16, batch_first=True), nn.Linear(16, 1)
optimizer = torch.optim.Adam([*model.parameters(), *head.parameters()], lr=1e-3)
for step in range(60):
    x = torch.randn(32, 8, 4)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(head(model(x)[0][:, -1]), x.mean((1, 2))[:, None])
    loss.backward()
    optimizer.step()
"""

SPIKY = frozenset({"RNN", "LSTM", "GRU", "RNNCell", "LSTMCell", "GRUCell", "MultiheadAttention"})
FEWEST = 30
TIMES_USUAL, SPIKES = 5.0, 3
BEFORE = 10


@rule.check
def spikes_go_through(training: Training) -> Iterator[Finding]:
    norms = [step.norm for step in training.taken_steps if isfinite(step.norm)]
    if training.clip is not None or training.breakdown is not None or len(norms) < FEWEST:
        return
    if not any(tensor.role in SPIKY for tensor in training.tensors):
        return
    spikes = list(_spikes(norms))
    if len(spikes) < SPIKES:
        return
    times, usual = max((norm / before, before) for norm, before in spikes)
    yield rule.finding(
        f"the gradient norm reaches {times:.0f} times the {usual:.3g} it had before, unclipped",
        training.stepped,
        evidence={"spikes": f"{len(spikes)} of {len(norms)} updates"},
        fix=f"clip_grad_norm_(model.parameters(), {max_norm(training).value:.2g}) between backward() and "
        "step()",
        confidence=0.7,
        subject=training.optimizer.id,
    )


def _spikes(norms: list[float]) -> Iterator[tuple[float, float]]:
    """With what was usual just before: over a whole run, norms fall as the model fits its data."""
    for position in range(BEFORE // 2, len(norms)):
        usual = median(norms[max(0, position - BEFORE) : position])
        if usual and norms[position] > TIMES_USUAL * usual:
            yield norms[position], usual
