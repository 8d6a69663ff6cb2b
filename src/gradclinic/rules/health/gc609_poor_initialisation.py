"""The signal grows or shrinks by a constant factor per layer from the first update on.

## What it finds
Initial weights several times too large or too small for their fan-in, with the effect that shows it:
activations that grow a thousandfold from the first layer to the last, or gradients that fade
a thousandfold in a run that does not learn.

## Why it hurts
Forward or backward, the signal is multiplied by the same factor at every layer. Ten layers turn a factor
of four into a million: the loss starts in the millions, or no gradient arrives.

## What to do
Initialise by fan-in: `nn.init.kaiming_normal_(w, nonlinearity="relu")` for ReLU,
`nn.init.xavier_uniform_(w)` for tanh, or leave the layers as torch makes them.

## Not the fix
A learning rate adapted to the scale of the weights: layers differ. Clipping: the signal forward is as
wrong as the gradient.

## Known limits
Models with fewer than four weight matrices are not judged. Normalisation layers make up for the scale of
the weights, and then nothing is found since no signal grows or shrinks.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite, sqrt
from statistics import median

from gradclinic.facts.source import Source
from gradclinic.facts.training import Training
from gradclinic.findings import Finding, Severity
from gradclinic.rules._rule import Rule
from gradclinic.rules.health._progress import Verdict, progress

rule = Rule(
    "GC609",
    "poor-initialisation",
    Severity.WARNING,
    since="0.1.0",
    sources=(Source.RUNTIME,),
    topic="initialisation",
    explains=(
        *("GC601", "GC603", "GC506", "GC507", "GC508", "GC612", "GC411"),
        *("GC307", "GC602", "GC607", "GC608"),
    ),
)

BAD = """
import torch
from torch import nn

torch.manual_seed(0)
layers = [nn.Linear(32, 128)]
for _ in range(6):
    layers += [nn.ReLU(), nn.Linear(128, 128)]
model = nn.Sequential(*layers, nn.ReLU(), nn.Linear(128, 1))
for layer in model:
    if isinstance(layer, nn.Linear):
        nn.init.normal_(layer.weight, std=1.0)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for step in range(60):
    x = torch.randn(64, 32)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x[:, :1])
    loss.backward()
    optimizer.step()
"""

BAD_TOO_SMALL = """
import torch
from torch import nn

torch.manual_seed(0)
layers = [nn.Linear(32, 128)]
for _ in range(6):
    layers += [nn.ReLU(), nn.Linear(128, 128)]
model = nn.Sequential(*layers, nn.ReLU(), nn.Linear(128, 10))
for layer in model:
    if isinstance(layer, nn.Linear):
        nn.init.normal_(layer.weight, std=1e-3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(80):
    x = torch.randn(256, 32)
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), x[:, :10].argmax(1))
    loss.backward()
    optimizer.step()
"""

GOOD = """
import torch
from torch import nn

torch.manual_seed(0)
layers = [nn.Linear(32, 128)]
for _ in range(6):
    layers += [nn.ReLU(), nn.Linear(128, 128)]
model = nn.Sequential(*layers, nn.ReLU(), nn.Linear(128, 10))
for layer in model:
    if isinstance(layer, nn.Linear):
        nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for step in range(80):
    x = torch.randn(64, 32)
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), x[:, :10].argmax(1))
    loss.backward()
    optimizer.step()
"""

FEWEST_MATRICES = 4
TOO_LARGE, TOO_SMALL = 4.0, 0.05
"""Gains: 0.6 is torch's own, 1 Xavier's, 1.4 Kaiming's."""
GROWN = 1e3
FADED = 1e3


@rule.check
def scale_of_initial_weights(training: Training) -> Iterator[Finding]:
    gains = _gains(training)
    if len(gains) < FEWEST_MATRICES:
        return
    gain = median(gains)
    growth = _growth(training)
    if gain >= TOO_LARGE and growth >= GROWN:
        what = f"{gain / 1.4:.0f} times too large for ReLU"
        effect = f"the signal grows {growth:.0e}-fold from the first activation to the last"
    elif gain <= TOO_SMALL and _fades(training) and progress(training).verdict is Verdict.FLAT:
        what = f"{1.4 / gain:.0f} times too small for ReLU"
        effect = "the gradient fades before it reaches the first layers"
    else:
        return
    yield rule.finding(
        f"the initial weights are {what}: {effect}",
        training.optimizer.built or training.backward,
        evidence={
            "gain (std times the root of fan-in)": f"{gain:.2g}; 0.6 to 1.4 keeps a signal as it is",
            "first losses": " ".join(f"{loss:.3g}" for _, loss in training.losses[:3]),
        },
        fix='initialise by fan-in: nn.init.kaiming_normal_(weight, nonlinearity="relu") or xavier_uniform_',
        confidence=0.92,
        subject=training.optimizer.id,
    )


def _gains(training: Training) -> list[float]:
    """The spread of each matrix at the first update, times the root of its fan-in."""
    if not training.samples or training.samples[0].index > 0:
        return []
    first = training.samples[0]
    found = []
    for i in training.matrices:
        tensor, norm = training.tensors[i], first.weights[i]
        if norm > 0 and isfinite(norm):
            fan_in = tensor.size / tensor.shape[0]
            found.append(norm / sqrt(tensor.size) * sqrt(fan_in))
    return found


def _growth(training: Training) -> float:
    sizes = [a.samples[0].size for a in training.activations if a.kind == "relu" and a.samples]
    sizes = [size for size in sizes if isfinite(size) and size > 0]
    return sizes[-1] / sizes[0] if len(sizes) >= 3 else 0.0


def _fades(training: Training) -> bool:
    step = training.taken_steps[0]
    norms = [step.gradients[i] for i in training.matrices if step.gradients[i] >= 0]
    return len(norms) >= FEWEST_MATRICES and norms[0] * FADED < norms[-1]
