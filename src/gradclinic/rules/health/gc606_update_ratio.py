"""One weight moves by orders of magnitude less, or more, than the others.

## What it finds
A weight matrix whose updates, as a share of its size, are a thousand times smaller or larger than is
usual in the same optimizer, look after look.

## Why it hurts
That layer is as good as frozen while the others learn, or it is rewritten at every update and the
others chase it. A slip in the rate of a parameter group, or an initial scale far from the rest, does
this.

## What to do
Compare the learning rates of the parameter groups, and the initial size of that weight with its
neighbours'.

## Not the fix
Another rate for all: it moves every layer alike.

## Known limits
Advice: rates that fall from layer to layer are sometimes meant. Weights that began at zero are left
out, and at least four matrices are needed to know what is usual.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite
from statistics import median

from gradclinic.facts.source import Source
from gradclinic.facts.training import Training
from gradclinic.findings import Finding, Severity
from gradclinic.rules._rule import Rule

rule = Rule(
    "GC606",
    "update-ratio",
    Severity.INFO,
    since="0.1.0",
    sources=(Source.RUNTIME,),
    topic="size of the updates",
)

BAD = """
import torch
from torch import nn

torch.manual_seed(0)
layers = [nn.Linear(8, 8) for _ in range(5)]
model = nn.Sequential(*(part for layer in layers for part in (layer, nn.Tanh())), nn.Linear(8, 3))
slow = set(layers[2].parameters())
groups = [{"params": [p for p in model.parameters() if p not in slow]}, {"params": list(slow), "lr": 3e-8}]
optimizer = torch.optim.AdamW(groups, lr=3e-3, weight_decay=0.0)
for step in range(60):
    x = torch.randn(64, 8)
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), x[:, :3].argmax(1))
    loss.backward()
    optimizer.step()
"""

GOOD = """
import torch
from torch import nn

torch.manual_seed(0)
layers = [nn.Linear(8, 8) for _ in range(5)]
model = nn.Sequential(*(part for layer in layers for part in (layer, nn.Tanh())), nn.Linear(8, 3))
slow = set(layers[2].parameters())
groups = [{"params": [p for p in model.parameters() if p not in slow]}, {"params": list(slow), "lr": 3e-4}]
optimizer = torch.optim.AdamW(groups, lr=3e-3, weight_decay=0.0)
for step in range(60):
    x = torch.randn(64, 8)
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), x[:, :3].argmax(1))
    loss.backward()
    optimizer.step()
"""

FEWEST_MATRICES, FEWEST_LOOKS = 4, 5
ORDERS = 1e3


@rule.check
def one_moves_apart(training: Training) -> Iterator[Finding]:
    ratios = _typical(training)
    if len(ratios) < FEWEST_MATRICES or training.breakdown is not None:
        return
    usual = median(ratios.values())
    apart = {i: r for i, r in ratios.items() if usual > 0 and not 1 / ORDERS < r / usual < ORDERS}
    if not apart or len(apart) * 4 > len(ratios):
        return
    worst = max(apart, key=lambda i: abs(apart[i] / usual - 1))
    yield rule.finding(
        f"{training.tensors[worst].name} moves by {apart[worst]:.1e} of its size per update, "
        f"where {usual:.1e} is usual",
        training.optimizer.built or training.stepped,
        evidence={"weights concerned": ", ".join(training.tensors[i].name for i in apart)},
        fix="compare the learning rates of the parameter groups and the initial size of that weight",
        confidence=0.7,
        subject=training.optimizer.id,
    )


def _typical(training: Training) -> dict[int, float]:
    """The median over the looks of update to weight, for each matrix that did not begin at zero."""
    found: dict[int, list[float]] = {}
    for sample in training.samples:
        for i in training.matrices:
            if sample.updates[i] >= 0 and sample.weights[i] > 0:
                found.setdefault(i, []).append(sample.updates[i] / sample.weights[i])
    looks = len(training.samples)
    return {
        i: median(values)
        for i, values in found.items()
        if len(values) == looks >= FEWEST_LOOKS and all(map(isfinite, values))
    }
