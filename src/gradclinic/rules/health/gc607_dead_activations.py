"""Most units of a ReLU layer are zero for every sample, and stay so.

## What it finds
A hidden ReLU of at least eight units of which nine in ten give zero for all samples of every batch that
was looked at, in a run that does not learn; or one whose units all do, look after look.

## Why it hurts
A unit that is zero everywhere passes no gradient, so nothing can bring it back. A layer of dead units
cuts all layers before it off from the loss.

## What to do
Lower the learning rate or warm it up: one large update pushes the biases below what any input reaches.
Check the initialisation of the biases and the scale of the inputs. LeakyReLU, GELU or a normalisation
layer before the activation keep units alive.

## Not the fix
A wider layer: its units die the same way.

## Known limits
Activations are read off the autograd graph, so those of compiled or checkpointed parts are not seen.
Some dead units are normal, and sparse on purpose is not dead: other samples wake other units.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts.source import Source
from gradclinic.facts.training import Activation, Training
from gradclinic.findings import Finding, Severity
from gradclinic.rules._rule import Rule
from gradclinic.rules.health._progress import Verdict, progress

rule = Rule(
    "GC607",
    "dead-activations",
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
model = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 3))
nn.init.normal_(model[2].bias, mean=-5.0, std=1.6)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(100):
    x = torch.randn(64, 10)
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), x[:, :3].argmax(1))
    loss.backward()
    optimizer.step()
"""

GOOD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(100):
    x = torch.randn(64, 10)
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), x[:, :3].argmax(1))
    loss.backward()
    optimizer.step()
"""

DEAD = 0.9
FEWEST_UNITS = 8
LOOKS = 3
LOOKS_AT_NOTHING = 6


@rule.check
def units_are_dead(training: Training) -> Iterator[Finding]:
    if training.breakdown is not None:
        return
    outcome = progress(training)
    # Below a layer that gives nothing at all nothing is learned, whatever the loss does above it.
    stuck = outcome.verdict in (Verdict.FLAT, Verdict.WORSE)
    dead = [a for a in training.activations if (stuck and _is_dead(a)) or _gives_nothing(a)]
    if not dead:
        return
    worst = max(dead, key=lambda activation: activation.samples[-1].dead)
    share = worst.samples[-1].dead
    yield rule.finding(
        f"{share:.0%} of the units of ReLU {worst.ordinal + 1} are zero for every sample"
        + (", and the run does not learn" if stuck else ": nothing before it learns"),
        worst.where or training.backward,
        evidence={
            "dead units": " ".join(f"{sample.dead:.0%}" for sample in worst.samples[-6:]),
            "layers concerned": f"{len(dead)} of {sum(a.kind == 'relu' for a in training.activations)}",
            "loss": outcome.story,
        },
        fix="lower the learning rate, check the initial biases and the scale of the inputs, or use LeakyReLU",
        confidence=0.9,
        subject=training.optimizer.id,
    )


def _gives_nothing(activation: Activation) -> bool:
    """Zero for every sample whenever it was looked at: it never was alive, or died at once and for good."""
    latest = activation.samples[-LOOKS_AT_NOTHING:]
    return _is_dead(activation) and len(latest) == LOOKS_AT_NOTHING and all(s.dead == 1.0 for s in latest)


def _is_dead(activation: Activation) -> bool:
    latest = activation.samples[-LOOKS:]
    return (
        activation.kind == "relu"
        and activation.hidden
        and activation.units >= FEWEST_UNITS
        and len(latest) == LOOKS
        and all(sample.dead >= DEAD for sample in latest)
    )
