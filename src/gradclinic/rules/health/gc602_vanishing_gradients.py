"""The first layers get next to no gradient, and the run does not learn.

## What it finds
Gradients of the early layers, relative to their weights, at least a thousand times smaller than those
of the late ones through most of a run whose loss does not move. Small gradients in a run that learns
are healthy and not reported. Adam and its like make up for the size of a gradient: with them it has to
be a hundred thousand times smaller.

## Why it hurts
The layers nearest to the data stay as they were initialised; the rest can only rearrange what these
random layers let through.

## What to do
Break the long chain of shrinking factors: residual connections, a normalisation layer, ReLU or GELU in
place of sigmoid or tanh, an initialisation made for the activation (`kaiming_normal_`,
`xavier_uniform_`), an LSTM or GRU in place of a plain RNN.

## Not the fix
A higher learning rate: the late layers, which do get gradient, diverge long before the early ones move.
Clipping: it makes gradients smaller only.

## Known limits
Layers are taken in the order the optimizer holds them, which is that of most models. Runs shorter than
40 updates are not judged.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite
from statistics import median

from gradclinic.facts.source import Source
from gradclinic.facts.training import Training
from gradclinic.findings import Finding, Severity
from gradclinic.rules._rule import Rule
from gradclinic.rules.health._progress import Verdict, progress

rule = Rule(
    "GC602",
    "vanishing-gradients",
    Severity.WARNING,
    since="0.1.0",
    sources=(Source.RUNTIME,),
    topic="gradient size",
    explains=("GC612",),
)

BAD = """
import torch
from torch import nn

torch.manual_seed(0)
layers = [nn.Linear(8, 32)]
for _ in range(11):
    layers += [nn.Sigmoid(), nn.Linear(32, 32)]
model = nn.Sequential(*layers, nn.Sigmoid(), nn.Linear(32, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(120):
    x = torch.randn(64, 8)
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), x[:, :4].argmax(1))
    loss.backward()
    optimizer.step()
"""

GOOD = """
import torch
from torch import nn

torch.manual_seed(0)
layers = [nn.Linear(8, 32)]
for _ in range(5):
    layers += [nn.ReLU(), nn.LayerNorm(32), nn.Linear(32, 32)]
model = nn.Sequential(*layers, nn.ReLU(), nn.Linear(32, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(120):
    x = torch.randn(64, 8)
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), x[:, :4].argmax(1))
    loss.backward()
    optimizer.step()
"""

FEWEST = 40
TIMES = 1000.0
TIMES_IF_ADAPTIVE = 1e5


@rule.check
def early_layers_starve(training: Training) -> Iterator[Finding]:
    outcome = progress(training)
    if outcome.verdict is not Verdict.FLAT or outcome.updates < FEWEST or len(training.matrices) < 4:
        return
    pulls = _pulls(training)
    if len(pulls) < 4:
        return
    quarter = max(1, len(pulls) // 4)
    early = median(pull for _, pull in pulls[:quarter])
    late = median(pull for _, pull in pulls[-quarter:])
    least = TIMES_IF_ADAPTIVE if training.adaptive else TIMES
    if not (late > 0 and early * least < late):
        return
    first, last = training.tensors[pulls[0][0]].name, training.tensors[pulls[-1][0]].name
    times = f"{late / early:.0f} times weaker" if early > 0 else "nothing"
    yield rule.finding(
        f"the first layers get {times}: the gradient fades on its way back and the loss does not move",
        training.backward,
        evidence={
            f"gradient per weight in {first}": f"{pulls[0][1]:.2e}",
            f"in {last}": f"{pulls[-1][1]:.2e}",
            "loss": outcome.story,
        },
        fix="residual connections, normalisation layers, or ReLU-like activations with a matching "
        "initialisation",
        confidence=0.85,
        subject=training.optimizer.id,
    )


def _pulls(training: Training) -> list[tuple[int, float]]:
    """Gradient to weight of each matrix in order, the median over the sampled updates."""
    steps = {step.index: step for step in training.taken_steps}
    pulls: dict[int, list[float]] = {}
    for sample in training.samples:
        step = steps.get(sample.index)
        if step is None or len(step.gradients) != len(training.tensors):
            continue
        for i in training.matrices:
            gradient, weight = step.gradients[i], sample.weights[i]
            if gradient >= 0 and weight > 0 and isfinite(gradient):
                pulls.setdefault(i, []).append(gradient / weight)
    return [(i, median(pulls[i])) for i in training.matrices if i in pulls]
