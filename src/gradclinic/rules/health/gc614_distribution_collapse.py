"""The weights of a layer have collapsed to zero, and the run does not learn.

## What it finds
In a run whose loss does not fall: a weight matrix that has shrunk to a hundredth of the size it began
with, and stays there.

## Why it hurts
Nothing of a sample gets through weights that are all but zero: the model answers the same to every
input, and the gradient that could mend it passes through the same weights. The norm of all parameters
or gradients together may look ordinary, since a bias or the last layer makes up for it.

## What to do
It is nearly always a weight decay, or a penalty in the loss, that is stronger than the loss itself:
lower it tenfold or more. Usual values of `weight_decay` are 1e-4 for SGD and 0.01 to 0.1 for AdamW.

## Not the fix
A higher learning rate: the decay of a step grows with it.

## Known limits
A run that learns is not judged, whatever its weights do: those before a normalisation layer may shrink
without harm. At least 40 updates are needed. Activations that collapse are dead or saturated ones,
GC607 and GC608, gradients that do vanish, GC602. Outputs that collapse without labels are not seen.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts.source import Source
from gradclinic.facts.training import Training
from gradclinic.findings import Finding, Severity
from gradclinic.rules._rule import Rule
from gradclinic.rules.health._progress import Verdict, progress

rule = Rule(
    "GC614",
    "distribution-collapse",
    Severity.WARNING,
    since="0.1.0",
    sources=(Source.RUNTIME,),
    topic="size of the weights",
    explains=("GC602", "GC606", "GC612"),
)

BAD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=0.1)
for step in range(150):
    x = torch.randn(64, 16)
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), x[:, :4].argmax(1))
    loss.backward()
    optimizer.step()
"""

GOOD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
for step in range(150):
    x = torch.randn(64, 16)
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), x[:, :4].argmax(1))
    loss.backward()
    optimizer.step()
"""

GOOD_NORMALISED = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 64, bias=False), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 4))
decayed = {"params": [model[0].weight], "lr": 1e-4, "weight_decay": 500.0}
optimizer = torch.optim.SGD([decayed, {"params": [*model[1].parameters(), *model[3].parameters()]}], lr=0.1)
for step in range(150):
    x = torch.randn(64, 16)
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), x[:, :4].argmax(1))
    loss.backward()
    optimizer.step()
"""

FEWEST = 40
LOOKS = 3
SHRUNK = 0.01


@rule.check
def a_layer_has_collapsed(training: Training) -> Iterator[Finding]:
    outcome = progress(training)
    if outcome.verdict not in (Verdict.FLAT, Verdict.WORSE) or outcome.updates < FEWEST:
        return
    if training.breakdown is not None:
        return
    shrunk = _shrunk(training)
    if shrunk:
        share, worst = min((share, i) for i, share in shrunk.items())
        yield rule.finding(
            f"{training.tensors[worst].name} has shrunk to {share:.2g} of the size it began with, "
            "and the run does not learn",
            training.optimizer.built or training.stepped,
            evidence={"weights concerned": _named(training, shrunk), "loss": outcome.story},
            fix="lower the weight decay or the penalty that pulls the weights to zero, tenfold or more",
            confidence=0.9,
            subject=training.optimizer.id,
        )


def _shrunk(training: Training) -> dict[int, float]:
    """What is left of each matrix that has all but vanished, as a share of its first size."""
    first, latest = training.samples[:1], training.samples[-LOOKS:]
    return {
        i: latest[-1].weights[i] / first[0].weights[i]
        for i in (training.matrices if len(training.samples) > LOOKS else ())
        if first[0].weights[i] > 0
        and all(0 <= sample.weights[i] <= SHRUNK * first[0].weights[i] for sample in latest)
    }


def _named(training: Training, concerned: dict[int, float]) -> str:
    names = [training.tensors[i].name for i in concerned]
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
