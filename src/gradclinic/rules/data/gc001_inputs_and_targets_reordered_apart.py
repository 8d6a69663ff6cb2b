"""Inputs and labels were put in different orders, so that they no longer belong together.

## What it finds
In source, inputs and labels that are each put in a random order of their own. By experiment, data whose
labels teach a model no more than the same labels dealt out at random: it learns both by heart and
predicts neither on samples it has not seen.

## Why it hurts
The training loss falls, because a large model memorises anything, and the validation loss stays at
the level of a constant guess. It looks like overfitting and no regularisation helps.

## What to do
Shuffle one list of indices and take both from it. Give a loader one data set of pairs, not two
loaders with `shuffle=True` side by side.

## Not the fix
Regularisation, more data, a smaller model.

## Known limits
Labels that really have nothing to do with the inputs look the same, hence a lower confidence. A
model that cannot learn within the time given is not judged.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import Source
from gradclinic.facts.stored import LabelAlignment, ReorderedApart
from gradclinic.findings import Finding, Severity
from gradclinic.rules._rule import Rule

rule = Rule(
    "GC001",
    "inputs-and-targets-reordered-apart",
    Severity.ERROR,
    since="0.1.0",
    sources=(Source.STATIC, Source.PROBE),
    topic="inputs and labels",
    explains=("GC612",),
)

BAD = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from gradclinic import Case


def make():
    torch.manual_seed(0)
    x = torch.randn(512, 8)
    y = (x[:, 0] > 0).long()
    pairs = TensorDataset(x[torch.randperm(512)], y[torch.randperm(512)])
    return Case(
        nn.Sequential(nn.Linear(8, 128), nn.ReLU(), nn.Linear(128, 2)),
        loss=lambda out, batch: nn.functional.cross_entropy(out, batch[1]),
        loader=DataLoader(pairs, batch_size=16, shuffle=True),
    )
"""

BAD_TRAINING = """
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(512, 8)
y = (x[:, 0] > 0).long()
x = x[torch.randperm(512)]
y = y[torch.randperm(512)]
model = nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
"""

GOOD = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from gradclinic import Case


def make():
    torch.manual_seed(0)
    x = torch.randn(512, 8)
    y = (x[:, 0] > 0).long()
    order = torch.randperm(512)
    return Case(
        nn.Sequential(nn.Linear(8, 128), nn.ReLU(), nn.Linear(128, 2)),
        loss=lambda out, batch: nn.functional.cross_entropy(out, batch[1]),
        loader=DataLoader(TensorDataset(x[order], y[order]), batch_size=16, shuffle=True),
    )
"""

LEARNED = 0.3
"""Of the training loss: with less removed, the model may simply need more time."""
NO_BETTER = 0.02


@rule.check
def labels_teach_nothing(seen: LabelAlignment) -> Iterator[Finding]:
    control = min(seen.shuffled)
    if seen.memorised < LEARNED or seen.real < control - NO_BETTER * abs(seen.start):
        return
    yield rule.finding(
        "the labels teach no more than labels dealt out at random: inputs and labels may be out of step",
        seen.where,
        evidence={
            "held-out loss, pairs as they come": f"{seen.real:.4g}",
            "held-out loss, labels dealt anew": ", ".join(f"{loss:.4g}" for loss in seen.shuffled),
            "learned by heart": f"{seen.memorised:.0%} of the training loss",
        },
        fix="order inputs and labels by one and the same permutation",
        confidence=0.6,
        severity=Severity.WARNING,
    )


@rule.check
def each_in_its_own_order(seen: ReorderedApart) -> Iterator[Finding]:
    yield rule.finding(
        f"{seen.inputs} and {seen.targets} are each put in a random order of their own",
        seen.where,
        evidence={f"order of {seen.inputs}": str(seen.first), f"order of {seen.targets}": str(seen.where)},
        fix="draw one permutation and index both with it",
        confidence=0.9,
    )
