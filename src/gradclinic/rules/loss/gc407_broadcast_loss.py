"""Prediction and target have different shapes, and the loss broadcasts them against each other.

## What it finds
An elementwise loss of shapes such as (N, 1) and (N,): every prediction is compared with every
target.

## Why it hurts
The result is an N by N table of differences whose mean is smallest when every prediction equals
the mean of all targets. The loss falls a little, looks plausible, and the model learns a constant.

## What to do
Give both the same shape: `prediction.squeeze(-1)`, or `target.unsqueeze(-1)`.

## Not the fix
Filtering the warning torch prints about it. A larger model.

## Known limits
Differences written out by hand are recognised when the run builds an N by N table from an (N, 1)
prediction; other broadcasts may be meant and are left alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import LossCall, Source
from gradclinic.findings import Finding, Severity
from gradclinic.rules._rule import Rule

rule = Rule(
    "GC407",
    "broadcast-loss",
    Severity.ERROR,
    since="0.1.0",
    sources=(Source.RUNTIME,),
    topic="loss and its target",
    explains=("GC612", "GC206"),
)

BAD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(20):
    x = torch.randn(32, 4)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1))
    loss.backward()
    optimizer.step()
"""

GOOD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(20):
    x = torch.randn(32, 4)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x).squeeze(-1), x.sum(1))
    loss.backward()
    optimizer.step()
"""

GOOD_PAIRWISE_ON_PURPOSE = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(20):
    x = torch.randn(32, 4)
    truth = x.sum(1)
    optimizer.zero_grad()
    score = model(x).squeeze(-1)
    ahead = truth[:, None] > truth[None, :]
    loss = torch.relu(1 - (score[:, None] - score[None, :]))[ahead].mean()
    loss.backward()
    optimizer.step()
"""

ELEMENTWISE = frozenset(
    {"mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "gaussian_nll_loss", "difference"}
)


@rule.check
def every_pair_compared(call: LossCall) -> Iterator[Finding]:
    given, target = call.input_shape, call.target_shape
    if call.loss not in ELEMENTWISE or not given or not target or given == target:
        return
    if 1 in (_size(given), _size(target)) or (len(given) == len(target) and _size(given) == _size(target)):
        return
    yield rule.finding(
        f"prediction {given} and target {target} are broadcast: each prediction meets every target",
        call.where,
        evidence={"prediction": given, "target": target, "compared as": _broadcast(given, target)},
        fix="give both one shape: prediction.squeeze(-1) or target.unsqueeze(-1)",
        confidence=0.97,
    )


def _size(shape: tuple[int, ...]) -> int:
    size = 1
    for length in shape:
        size *= length
    return size


def _broadcast(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    width = max(len(a), len(b))
    left, right = (1,) * (width - len(a)) + a, (1,) * (width - len(b)) + b
    return tuple(max(x, y) for x, y in zip(left, right, strict=True))
