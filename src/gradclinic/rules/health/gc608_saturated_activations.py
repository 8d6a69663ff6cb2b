"""Nearly all units of a sigmoid or tanh layer are pinned to its flat tails.

## What it finds
A hidden sigmoid or tanh nine in ten of whose values lie within a hundredth of its limits, look after
look, in a run that does not learn; or nearly all of them from the first update on.

## Why it hurts
The slope in the tails is next to zero: what comes before the layer gets no gradient.

## What to do
Bring the input of the layer back to the order of one: standardise the inputs, initialise with smaller
weights (`xavier_uniform_`), put a normalisation layer before the activation, lower the learning rate.

## Not the fix
A higher learning rate: it pushes further into the tails.

## Known limits
The last activation before the loss is not judged, since a sure classifier saturates its output.
Activations of compiled or checkpointed parts are not seen.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts.source import Source
from gradclinic.facts.training import Activation, Training
from gradclinic.findings import Finding, Severity
from gradclinic.rules._rule import Rule
from gradclinic.rules.health._progress import Verdict, progress

rule = Rule(
    "GC608",
    "saturated-activations",
    Severity.WARNING,
    since="0.1.0",
    sources=(Source.RUNTIME,),
    topic="activations",
    explains=("GC206", "GC602", "GC612"),
)

BAD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(10, 64), nn.Sigmoid(), nn.Linear(64, 64), nn.Sigmoid(), nn.Linear(64, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for step in range(100):
    x = 3000 + 5 * torch.randn(128, 10)
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), x[:, :3].argmax(1))
    loss.backward()
    optimizer.step()
"""

GOOD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(10, 64), nn.Sigmoid(), nn.Linear(64, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(100):
    x = (3000 + 5 * torch.randn(128, 10) - 3000) / 5
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), x[:, :3].argmax(1))
    loss.backward()
    optimizer.step()
"""

PINNED = 0.9
LOOKS = 3
NEARLY_ALL, MANY_LOOKS = 0.97, 6


@rule.check
def units_are_pinned(training: Training) -> Iterator[Finding]:
    if training.breakdown is not None:
        return
    outcome = progress(training)
    stuck = outcome.verdict in (Verdict.FLAT, Verdict.WORSE)
    pinned = [a for a in training.activations if (stuck and _is_pinned(a)) or _never_was_free(a)]
    if not pinned:
        return
    first = pinned[0]
    yield rule.finding(
        f"{first.samples[-1].pinned:.0%} of the values of {first.kind} {first.ordinal + 1} are in its flat "
        "tails" + (", and the run does not learn" if stuck else ": hardly anything passes back through it"),
        first.where or training.backward,
        evidence={
            "in the tails": " ".join(f"{sample.pinned:.0%}" for sample in first.samples[-6:]),
            "layers concerned": len(pinned),
            "loss": outcome.story,
        },
        fix="bring what enters the activation to the order of one: standardise the inputs, smaller weights",
        confidence=0.88,
        subject=training.optimizer.id,
    )


def _never_was_free(activation: Activation) -> bool:
    """Nearly all values in the tails whenever it was looked at, from the first update on."""
    shares = [sample.pinned for sample in activation.samples]
    return _is_pinned(activation) and len(shares) >= MANY_LOOKS and min(shares) >= NEARLY_ALL


def _is_pinned(activation: Activation) -> bool:
    latest = activation.samples[-LOOKS:]
    return (
        activation.kind in ("sigmoid", "tanh")
        and activation.hidden
        and len(latest) == LOOKS
        and all(sample.pinned >= PINNED for sample in latest)
    )
