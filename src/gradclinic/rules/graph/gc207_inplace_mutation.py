"""A value that backward needs was overwritten in place.

## What it finds
The error "one of the variables needed for gradient computation has been modified by an inplace
operation", with the line that wrote and the line that needed the old value.

## Why it hurts
Autograd keeps some inputs and results for the backward pass. An in-place write, or an optimizer
step between a forward and its backward, leaves it with other numbers than it computed with.

## What to do
Write out of place (`x = x + 1` in place of `x += 1`; `torch.relu(x)` for `relu_`), or clone first.
With several optimizers, run all backwards before the first step, or compute the second loss anew
after it.

## Not the fix
`retain_graph=True`, or writing through `.data`: the error goes away and the gradients are wrong.

## Known limits
In a run, the two lines are known in the first steps. In source, a write to the very result of a
`sigmoid`, `tanh`, `softmax`, `relu`, `exp` or `sqrt` is seen, and the step of an optimizer of torch under
linear layers and convolutions, where it was given all weights of a module; not where the file speaks of
mixed precision, which computes with copies.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import Crash, CrashKind, Source
from gradclinic.findings import Finding, Severity
from gradclinic.rules._rule import Rule

rule = Rule(
    "GC207",
    "inplace-mutation",
    Severity.ERROR,
    since="0.1.0",
    sources=(Source.STATIC, Source.RUNTIME),
    topic="the path of the gradient",
)

BAD = """
import torch
from torch import nn

torch.manual_seed(0)
first, second = nn.Linear(4, 8), nn.Linear(8, 1)
optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.05)
for step in range(20):
    x = torch.randn(32, 4)
    optimizer.zero_grad()
    hidden = torch.sigmoid(first(x))
    hidden += 1
    loss = nn.functional.mse_loss(second(hidden), x.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
"""

GOOD = """
import torch
from torch import nn

torch.manual_seed(0)
first, second = nn.Linear(4, 8), nn.Linear(8, 1)
optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.05)
for step in range(20):
    x = torch.randn(32, 4)
    x += 0.1
    optimizer.zero_grad()
    hidden = torch.sigmoid(first(x))
    hidden = hidden + 1
    loss = nn.functional.mse_loss(second(hidden), x.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
"""


@rule.check
def overwritten(crash: Crash) -> Iterator[Finding]:
    if crash.kind is not CrashKind.INPLACE:
        return
    evidence: dict[str, object] = {}
    if crash.wrote is not None:
        evidence["written by"] = f"{crash.wrote[1]} at {crash.wrote[0]}"
    if crash.needed is not None:
        evidence["needed by"] = f"the operation at {crash.needed}"
    evidence["error"] = crash.message
    by_step = crash.wrote is not None and crash.wrote[1] == "step"
    yield rule.finding(
        "an optimizer step changed weights that this backward still needs"
        if by_step
        else "a value that backward needs was overwritten in place",
        crash.wrote[0] if crash.wrote else crash.where,
        evidence=evidence,
        fix="run all backwards before the first step, or compute this loss after it"
        if by_step
        else "write out of place, or clone() before writing",
        confidence=0.95,
    )
