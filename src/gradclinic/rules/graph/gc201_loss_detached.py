"""The loss given to backward has no graph: nothing can be trained by it.

## What it finds
A backward on a tensor that no operation made: the loss was computed under `no_grad` or
`inference_mode`, or passed through `item()`, `detach()` or `.data`; and the same silenced by
`requires_grad_()`. It explains the error "does not require grad and does not have a grad_fn".

## Why it hurts
Without a graph there is no way from the loss to a parameter. Either torch stops with an error, or,
silenced, backward fills one scalar's gradient and the optimizer steps nothing.

## What to do
Compute the loss from the model's output with gradients on, and take numbers only for printing:

    loss = criterion(model(x), y)
    loss.backward()
    print(loss.item())

## Not the fix
`loss.requires_grad_()` or `torch.tensor(loss, requires_grad=True)`: the error goes away, and the
model still learns nothing.

## Known limits
The line that cut is known in the first steps of a run.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import Cut, CutKind, CutRole, Source
from gradclinic.findings import Finding, Severity
from gradclinic.rules._rule import Rule
from gradclinic.rules.graph._cuts import HOW, cut_seen

rule = Rule(
    "GC201",
    "loss-detached",
    Severity.ERROR,
    since="0.1.0",
    sources=(Source.STATIC, Source.RUNTIME),
    topic="the path of the gradient",
    explains=("GC612",),
    subsumes=("GC104", "GC105"),
)

BAD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(20):
    x = torch.randn(32, 4)
    optimizer.zero_grad()
    with torch.no_grad():
        loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
"""

GOOD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(20):
    x = torch.randn(32, 4)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        print(loss.item(), model(x).mean().item())
"""


@rule.check
def no_graph_left(cut: Cut) -> Iterator[Finding]:
    if cut.role is not CutRole.WHOLE or cut.kind in (CutKind.TENSOR, CutKind.NUMPY, CutKind.GRAD):
        return
    how = f": it was {HOW[cut.kind]}" if cut.where else ""
    yield rule.finding(
        f"the loss has no graph{how}"
        + ("; requires_grad_() only silenced the error" if cut.silenced else ""),
        cut.where or cut.backward,
        evidence=cut_seen(cut),
        fix="compute the loss from the model's output with gradients on, and use .item() only to print it",
        confidence=0.96,
    )
