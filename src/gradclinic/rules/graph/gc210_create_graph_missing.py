"""A gradient is part of the objective, and was taken without create_graph.

## What it finds
`torch.autograd.grad(...)` with respect to an input, without `create_graph=True`, whose result goes
into the loss: a gradient penalty, a force, the derivative in a physics residual.

## Why it hurts
The gradient comes back as a constant. The loss contains it, but nothing that it says about the
parameters reaches them: forces are not learned, the penalty does not penalise.

## What to do
Keep the graph of the gradient:

    force = -torch.autograd.grad(energy.sum(), position, create_graph=True)[0]

## Not the fix
`retain_graph=True`: it keeps the first graph and makes none of the gradient.

## Known limits
A gradient that moves an input (an attack, a sampler) or weighs a loss is no part of the objective
and is left alone; so is one that is detached on purpose.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import Cut, CutKind, CutRole, Source
from gradclinic.facts.reach import GradientReach
from gradclinic.findings import Finding, Fix, Keyword, Severity
from gradclinic.rules._rule import Rule
from gradclinic.rules.graph._cuts import cut_seen

rule = Rule(
    "GC210",
    "create-graph-missing",
    Severity.ERROR,
    since="0.1.0",
    sources=(Source.STATIC, Source.RUNTIME, Source.PROBE),
    topic="the path of the gradient",
    explains=("GC612",),
    subsumes=("GC104", "GC105"),
)

BAD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(20):
    position = torch.randn(32, 3, requires_grad=True)
    true_energy = position.pow(2).sum(1, keepdim=True).detach()
    true_force = -2 * position.detach()
    energy = model(position)
    force = -torch.autograd.grad(energy.sum(), position, retain_graph=True)[0]
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(energy, true_energy) + nn.functional.mse_loss(force, true_force)
    loss.backward()
    optimizer.step()
"""

GOOD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(20):
    position = torch.randn(32, 3, requires_grad=True)
    true_energy = position.pow(2).sum(1, keepdim=True).detach()
    true_force = -2 * position.detach()
    energy = model(position)
    force = -torch.autograd.grad(energy.sum(), position, create_graph=True)[0]
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(energy, true_energy) + nn.functional.mse_loss(force, true_force)
    loss.backward()
    optimizer.step()
"""

GOOD_ATTACKED_INPUT = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(20):
    x = torch.randn(32, 4)
    y = x[:, :3].argmax(1)
    nudged = x.clone().requires_grad_()
    direction = torch.autograd.grad(nn.functional.cross_entropy(model(nudged), y), nudged)[0]
    harder = x + 0.1 * direction.sign()
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(harder), y)
    loss.backward()
    optimizer.step()
"""


@rule.check
def gradient_is_a_constant(cut: Cut) -> Iterator[Finding]:
    if cut.kind is not CutKind.GRAD or (cut.role is not CutRole.WHOLE and not cut.parameters):
        return
    yield rule.finding(
        "a gradient that is part of the objective was taken without create_graph: it trains nothing",
        cut.where,
        evidence=cut_seen(cut),
        fix=Fix(
            "pass create_graph=True to this autograd.grad",
            changes=(Keyword(cut.where, "grad", "create_graph", "True"),) if cut.where else (),
        ),
        confidence=0.95,
    )


@rule.check
def constant_in_the_objective(reach: GradientReach) -> Iterator[Finding]:
    for inner in reach.inner:
        if inner.in_objective and not inner.differentiable:
            yield rule.finding(
                "a gradient that is part of the objective was taken without create_graph: it trains nothing",
                inner.where,
                evidence={"seen": "the loss changes with it, and no gradient flows back through it"},
                fix="pass create_graph=True to this autograd.grad",
                confidence=0.95,
            )
