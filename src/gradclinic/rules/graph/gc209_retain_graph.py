"""retain_graph=True keeps a graph that nothing goes through again.

## What it finds
A backward with `retain_graph=True` whose graph no later backward uses.

## Why it hurts
All saved activations stay in memory until the loss is dropped, usually while the next forward
already builds the next graph: up to twice the memory. It also hides the mistake it was often added
for, a hidden state or a loss that drags an old graph along.

## What to do
Remove it. Where it was added against the error "backward through the graph a second time", find
what carries the old graph and detach it, or add the losses and call backward once.

## Not the fix
`del loss`: the cause of the error it was to silence is still there.

## Known limits
Judged in the first backwards of a run.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import RetainedGraph, Source
from gradclinic.findings import Finding, Fix, Keyword, Severity
from gradclinic.rules._rule import Rule

rule = Rule(
    "GC209",
    "retain-graph",
    Severity.WARNING,
    since="0.1.0",
    sources=(Source.STATIC, Source.RUNTIME),
    topic="graphs kept in memory",
    explains=("GC613",),
)

BAD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
for step in range(20):
    x = torch.randn(32, 4)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward(retain_graph=True)
    optimizer.step()
"""

GOOD = """
import torch
from torch import nn

torch.manual_seed(0)
body, one, two = nn.Linear(4, 16), nn.Linear(16, 1), nn.Linear(16, 1)
optimizer = torch.optim.SGD([*body.parameters(), *one.parameters(), *two.parameters()], lr=0.02)
for step in range(20):
    x = torch.randn(32, 4)
    optimizer.zero_grad()
    hidden = torch.relu(body(x))
    nn.functional.mse_loss(one(hidden), x.sum(1, keepdim=True)).backward(retain_graph=True)
    nn.functional.mse_loss(two(hidden), x.mean(1, keepdim=True)).backward()
    optimizer.step()
"""

ENOUGH_CALLS = 4


@rule.check
def kept_for_nothing(kept: RetainedGraph) -> Iterator[Finding]:
    if kept.used or kept.calls < ENOUGH_CALLS:
        return
    yield rule.finding(
        "retain_graph=True keeps graphs that no second backward uses",
        kept.where,
        evidence={"backwards looked at": kept.calls, "operations kept": kept.nodes},
        fix=Fix(
            "remove retain_graph=True",
            changes=(Keyword(kept.where, "backward", "retain_graph", None),),
            safe=True,
        ),
        confidence=0.92,
    )
