"""A parameter is connected to the loss, and its gradient is exactly zero at every look.

## What it finds
Parameters whose gradient exists and holds nothing but zeros, on each of several steps.

## Why it hurts
Nothing is learned there. Typical causes: a product with a branch that is zero at the start (two
zero-initialised factors keep each other at zero), a ReLU whose units are all dead, a softmax over
a single element, rounding or comparing in the path, an integer cast.

## What to do
Look at the operation after that parameter: what is its derivative for the values seen? Initialise
one of two factors away from zero; normalise over the axis that was meant.

## Not the fix
A larger learning rate: zero times anything is zero.

## Known limits
One of several alike in a list of which others learn is left alone: an expert that no sample chose.
A recurrent weight alone is worth a note: the layer learns, but reads a single element, such as the
reverse half of `output[:, -1]` does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gradclinic.facts import Census, Parameter, Source
from gradclinic.facts.reach import GradientReach
from gradclinic.findings import Finding, Severity
from gradclinic.rules._naming import listed, modules_of
from gradclinic.rules._owners import has_twin
from gradclinic.rules._rule import Rule
from gradclinic.rules.graph._places import by_place

rule = Rule(
    "GC206",
    "parameter-zero-gradient",
    Severity.WARNING,
    since="0.1.0",
    sources=(Source.RUNTIME, Source.PROBE),
    topic="parameters and the loss",
    explains=("GC606", "GC612"),
)

BAD = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.base = nn.Linear(4, 1)
        self.down = nn.Linear(4, 2, bias=False)
        self.up = nn.Linear(2, 1, bias=False)
        nn.init.zeros_(self.down.weight)
        nn.init.zeros_(self.up.weight)

    def forward(self, x):
        return self.base(x) + self.up(self.down(x))


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(30):
    x = torch.randn(32, 4)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
"""

GOOD = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.base = nn.Linear(4, 1)
        self.down = nn.Linear(4, 2, bias=False)
        self.up = nn.Linear(2, 1, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, x):
        return self.base(x) + self.up(self.down(x))


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(30):
    x = torch.randn(32, 4)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
"""

ENOUGH_LOOKS = 6
_RECURRENT = re.compile(r"\bweight_hh(_l\d+)?(_reverse)?$")


@rule.check
def nothing_but_zeros(census: Census) -> Iterator[Finding]:
    alive = [p for p in census.parameters if p.reached and not p.always_zero]
    dead = [p for p in census.parameters if _dead(p, census)]
    if not alive:
        return
    recurrent = [p for p in dead if _RECURRENT.search(p.name)]
    dead = [p for p in dead if p not in recurrent]
    if dead:
        yield rule.finding(
            f"the gradient of {listed(modules_of(dead), most=2)} is exactly zero at every look",
            dead[0].built,
            evidence=_seen(dead),
            fix="find the operation behind it whose derivative is zero for the values that arrive",
            confidence=0.9,
            subject=dead[0].name,
        )
    if recurrent:
        yield _reads_one_element(recurrent)


def _reads_one_element(recurrent: list[Parameter]) -> Finding:
    layer = listed(modules_of(recurrent), most=2)
    reverse = all(p.name.endswith("_reverse") for p in recurrent)
    return rule.finding(
        f"the reverse direction of {layer} reads one element only"
        if reverse
        else f"{layer} reads one element only: its recurrent weights get no gradient",
        recurrent[0].built,
        evidence=_seen(recurrent),
        fix="take h_n, or output[:, 0] for the reverse half: at the last element it has just begun"
        if reverse
        else "give it the axis of time where it expects it (batch_first), or use a linear layer",
        confidence=0.8,
        severity=Severity.INFO,
        subject=recurrent[0].name,
    )


def _seen(dead: list[Parameter]) -> dict[str, object]:
    return {
        "zero gradient": listed(p.name for p in dead),
        "looked at": f"{dead[0].always_zero} steps of {dead[0].updates}",
    }


@rule.check
def zero_step_after_step(reach: GradientReach) -> Iterator[Finding]:
    for where, names in by_place({p.name: p.where for p in reach.parameters if p.always_zero}):
        yield rule.finding(
            f"the gradient of {listed(names)} is exactly zero in each of {reach.steps} steps",
            where,
            evidence={"alive": f"{reach.reached} of {len(reach.parameters)} trainable parameters"},
            fix="find the operation behind it whose derivative is zero for the values that arrive",
            confidence=0.85,
            subject=names[0],
        )


def _dead(p: Parameter, census: Census) -> bool:
    if not (p.trainable and p.holders and p.reached) or p.always_zero < ENOUGH_LOOKS:
        return False
    return not has_twin(p, census, lambda other: other.reached and not other.always_zero)
