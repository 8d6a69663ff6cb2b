"""A gradient that may be None is computed with.

## What it finds
`torch.autograd.grad(..., allow_unused=True)` whose result goes into a computation although nothing in
the file asks whether it is None.

## Why it hurts
`allow_unused=True` turns an error that says which input is not connected into a None. The program then
fails somewhere else, or, worse, with a broad `except` or a default, goes on without that gradient.

## What to do
Leave it out where every input must be connected. Where some may not be, say what None means:

    grads = torch.autograd.grad(loss, parameters, allow_unused=True)
    grads = [torch.zeros_like(p) if g is None else g for p, g in zip(parameters, grads)]

or let torch do that, with `materialize_grads=True`.

## Not the fix
Adding `0 * parameter.sum()` to the loss: the parameter is then connected to nothing that matters.

## Known limits
A result that is handed to a function out of sight is taken to be looked at there.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import Source, UncheckedGradient
from gradclinic.findings import Finding, Severity
from gradclinic.rules._rule import Rule

rule = Rule(
    "GC211",
    "allow-unused",
    Severity.WARNING,
    since="0.1.0",
    sources=(Source.STATIC,),
    topic="the path of the gradient",
)

BAD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
for step in range(20):
    x = torch.randn(32, 4, requires_grad=True)
    optimizer.zero_grad()
    out = model(x)
    slope = torch.autograd.grad(out.sum(), x, create_graph=True, allow_unused=True)[0]
    loss = nn.functional.mse_loss(out, x.detach().sum(1, keepdim=True)) + 0.1 * slope.pow(2).mean()
    loss.backward()
    optimizer.step()
"""

GOOD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
for step in range(20):
    x = torch.randn(32, 4, requires_grad=True)
    optimizer.zero_grad()
    out = model(x)
    slope = torch.autograd.grad(out.sum(), x, create_graph=True, allow_unused=True)[0]
    loss = nn.functional.mse_loss(out, x.detach().sum(1, keepdim=True))
    if slope is not None:
        loss = loss + 0.1 * slope.pow(2).mean()
    loss.backward()
    optimizer.step()
"""


@rule.check
def computed_with_none(gradient: UncheckedGradient) -> Iterator[Finding]:
    yield rule.finding(
        "allow_unused=True makes this gradient None where nothing is connected, and nothing asks for that",
        gradient.where,
        evidence={"computed with": str(gradient.used)},
        fix="remove allow_unused=True, or pass materialize_grads=True, or say what None means",
        confidence=0.85,
    )
