"""An operation on the way to the loss is at the edge of its domain.

## What it finds
A logarithm or square root of zero or less, or a division by zero, seen while the run computed its
loss, with a gradient flowing through it.

## Why it hurts
The derivative there is infinite or does not exist. One such element makes the gradient of every
parameter before it inf or NaN, even where the value itself is masked out afterwards.

## What to do
Use the stable form: `log_softmax` for log of softmax, `logsigmoid`, `log1p`, `expm1`,
`torch.linalg.vector_norm`; or keep the input away from the edge *before* the operation:
`(x + eps).sqrt()`, `x.clamp(min=eps).log()`.

## Not the fix
`torch.where(x > 0, x.log(), 0)`: the gradient of the branch not taken is still NaN. `nan_to_num`
on the loss: the gradient is NaN already.

## Known limits
In a run, looked for in the first steps. In source, only the logarithm of a softmax or sigmoid on the
way to backward is named, as advice: it is fine as long as no score runs away.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import DomainEdge, Source
from gradclinic.findings import Finding, Severity
from gradclinic.rules._rule import Rule

rule = Rule(
    "GC409",
    "unstable-math",
    Severity.WARNING,
    since="0.1.0",
    sources=(Source.STATIC, Source.RUNTIME),
    topic="numbers in the loss",
    explains=("GC506", "GC507", "GC508", "GC603"),
)

BAD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(3):
    x = 400 * torch.randn(32, 4)
    y = x[:, :3].argmax(1)
    optimizer.zero_grad()
    loss = -model(x).softmax(1).log()[torch.arange(32), y].mean()
    loss.backward()
    optimizer.step()
"""

GOOD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(20):
    x = torch.randn(32, 4)
    y = x[:, :3].argmax(1)
    optimizer.zero_grad()
    loss = -model(x).log_softmax(1)[torch.arange(32), y].mean()
    loss.backward()
    optimizer.step()
"""

INSTEAD = {
    "sqrt": "add a small number before the root: (x + eps).sqrt()",
    "rsqrt": "add a small number before the root: (x + eps).rsqrt()",
    "div": "keep the divisor away from zero: x / (y + eps)",
    "reciprocal": "keep the divisor away from zero: 1 / (y + eps)",
}


@rule.check
def beyond_the_domain(edge: DomainEdge) -> Iterator[Finding]:
    yield rule.finding(
        f"{edge.op} met {edge.value}, where its derivative does not exist"
        if edge.met
        else f"{edge.op} of a {edge.value}: where that underflows to exactly 0, the gradient is inf or NaN",
        edge.where,
        evidence={"smallest input seen": edge.value} if edge.met else {},
        fix=INSTEAD.get(edge.op, "use log_softmax or logsigmoid, or clamp the input before the log"),
        confidence=0.85 if edge.met else 0.6,
        severity=None if edge.met else Severity.INFO,
    )
