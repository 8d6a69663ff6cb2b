"""Losses or states that carry graphs are kept from update to update.

## What it finds
Losses of past updates that still exist with their graph, because a list or a sum keeps the tensor
in place of its number; the same over an evaluation that runs with gradients on (GC703); and the error
"backward through the graph a second time" that a state carried over without `detach()` ends in.

## Why it hurts
Each kept loss keeps what its graph holds. Memory grows with every update, and a hidden state that
drags its graph along makes backward run through all earlier steps, or fail.

## What to do
Keep numbers: `losses.append(loss.item())`, `total += loss.item()`. Detach what is carried on:
`state = state.detach()`.

## Not the fix
`retain_graph=True`: it lets backward run through the past, slower each time. `gc.collect()`.

## Known limits
In a run, a running sum is seen by its error or by the growth of memory, not by its parts; in source it
is seen where it is added to.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import Crash, CrashKind, KeptGraphs, Source
from gradclinic.findings import Finding, Fix, Severity, Suffix
from gradclinic.rules._rule import Rule

rule = Rule(
    "GC212",
    "graph-kept-alive",
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
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
losses = []
for step in range(40):
    x = torch.randn(32, 4)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
    losses.append(loss)
print(sum(losses).item() / len(losses))
"""

BAD_CARRIED_STATE = """
import torch
from torch import nn

torch.manual_seed(0)
cell, head = nn.GRUCell(4, 8), nn.Linear(8, 1)
optimizer = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.02)
state = torch.zeros(16, 8)
for step in range(20):
    x = torch.randn(16, 4)
    state = cell(x, state)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(head(state), x.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
"""

GOOD = """
import torch
from torch import nn

torch.manual_seed(0)
cell, head = nn.GRUCell(4, 8), nn.Linear(8, 1)
optimizer = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.02)
state = torch.zeros(16, 8)
losses = []
for step in range(40):
    x = torch.randn(16, 4)
    state = cell(x, state.detach())
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(head(state), x.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
"""


@rule.check
def losses_kept(kept: KeptGraphs) -> Iterator[Finding]:
    what = "outputs" if kept.outputs else "losses"
    whose = "an evaluation" if kept.evaluating else "past updates"
    yield rule.finding(
        f"{kept.alive} of {kept.of} earlier losses still exist, each with its graph"
        if kept.of
        else f"{what} of {whose} are kept here, each with its graph",
        kept.where,
        evidence={"losses alive": f"{kept.alive} of {kept.of}"} if kept.of else {},
        fix=Fix("keep the number: loss.item(), or loss.detach()", changes=(Suffix(kept.where, ".detach()"),)),
        confidence=0.92 if kept.of else 0.85,
        severity=Severity.INFO if kept.outputs else None,
    )


@rule.check
def second_backward(crash: Crash) -> Iterator[Finding]:
    if crash.kind is not CrashKind.SECOND_BACKWARD:
        return
    yield rule.finding(
        "this backward runs into the graph of an earlier update"
        if crash.spans_steps
        else "this backward runs through a graph that another backward has used up",
        crash.where,
        evidence={"error": crash.message},
        fix="detach what is carried from update to update: state = state.detach()"
        if crash.spans_steps
        else "add the losses and call backward once, or compute the shared part anew",
        confidence=0.9,
        severity=Severity.ERROR,
    )
