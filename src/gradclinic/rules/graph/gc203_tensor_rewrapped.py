"""A tensor that carries a graph is copied by torch.tensor(), which cuts the graph.

## What it finds
`torch.tensor(t)` or `torch.tensor([a, b])` of values that carry a graph, whose result then becomes
the objective, a part of it, or the only way from some parameters to it.

## Why it hurts
`torch.tensor` copies data and starts a new leaf. With `requires_grad=True` backward even runs,
and fills the gradient of the copy instead of the model's.

## What to do
Use the tensor itself. To combine several: `torch.stack([a, b]).sum()`, or `a + b`.

## Not the fix
`torch.tensor(..., requires_grad=True)`: that is a new leaf, unrelated to the model.

## Known limits
A copy that is only logged is not reported.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import Cut, CutKind, Source
from gradclinic.findings import Finding, Severity
from gradclinic.rules._rule import Rule
from gradclinic.rules.graph._cuts import cut_seen

rule = Rule(
    "GC203",
    "tensor-rewrapped",
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
    fit = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    size = model.weight.pow(2).sum()
    loss = fit + torch.tensor(size)
    loss.backward()
    optimizer.step()
"""

GOOD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
seen = []
for step in range(20):
    x = torch.randn(32, 4)
    optimizer.zero_grad()
    fit = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    size = model.weight.pow(2).sum()
    loss = torch.stack([fit, 0.1 * size]).sum()
    loss.backward()
    optimizer.step()
    seen.append(torch.tensor([fit.item(), size.item()]))
print(torch.stack(seen).mean(0))
"""


@rule.check
def copied_without_graph(cut: Cut) -> Iterator[Finding]:
    if cut.kind is not CutKind.TENSOR:
        return
    yield rule.finding(
        "torch.tensor() copies a value that carries a graph, and the copy goes into the objective",
        cut.where,
        evidence=cut_seen(cut),
        fix="use the tensor itself, or torch.stack([...]) to combine several",
        confidence=0.96,
    )
