"""NLLLoss is given something other than log-probabilities.

## What it finds
`nll_loss` or `ctc_loss`, or their modules, whose input comes straight from a layer, pooled or not, from
an activation or a softmax, without the logarithm.

## Why it hurts
NLL only picks and negates the value at the target. On raw scores it rewards making that score
large without limit, whatever the others are: the loss runs to minus infinity while accuracy does
not follow; CTC does the same along its paths. On probabilities NLL lies between -1 and 0 and its
gradient is weak.

## What to do
Use `cross_entropy` on raw scores, or put `log_softmax(dim=1)` before `nll_loss` and
`log_softmax(dim=2)` before `ctc_loss`.

## Not the fix
Adding a plain softmax: NLL needs its logarithm.

## Known limits
An input whose making cannot be followed is not judged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gradclinic.facts import LossCall, Op, Source
from gradclinic.findings import Finding, Severity
from gradclinic.rules._rule import Rule
from gradclinic.rules.loss._chain import chain_seen, named, place_of

rule = Rule(
    "GC404",
    "nll-on-raw-scores",
    Severity.ERROR,
    since="0.1.0",
    sources=(Source.STATIC, Source.RUNTIME),
    topic="loss and its input",
    explains=("GC612", "GC413", "GC601"),
)

BAD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))
criterion = nn.NLLLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(20):
    x = torch.randn(32, 4)
    y = x[:, :3].argmax(1)
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
"""

BAD_PROBABILITIES = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3), nn.Softmax(dim=1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(20):
    x = torch.randn(32, 4)
    y = x[:, :3].argmax(1)
    optimizer.zero_grad()
    loss = nn.functional.nll_loss(model(x), y)
    loss.backward()
    optimizer.step()
"""

BAD_CTC = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))
criterion = nn.CTCLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(20):
    frames = torch.randn(12, 8, 4)
    optimizer.zero_grad()
    loss = criterion(model(frames), torch.randint(1, 3, (8, 3)), torch.full((8,), 12), torch.full((8,), 3))
    loss.backward()
    optimizer.step()
"""

GOOD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3), nn.LogSoftmax(dim=1))
criterion = nn.NLLLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(20):
    x = torch.randn(32, 4)
    y = x[:, :3].argmax(1)
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
"""

GOOD_LOG_OF_MIXED_PROBABILITIES = """
import torch
from torch import nn

torch.manual_seed(0)
experts = nn.ModuleList(nn.Linear(4, 3) for _ in range(2))
optimizer = torch.optim.SGD(experts.parameters(), lr=0.01)
for step in range(20):
    x = torch.randn(32, 4)
    y = x[:, :3].argmax(1)
    optimizer.zero_grad()
    mixed = sum(expert(x).softmax(1) for expert in experts) / 2
    loss = nn.functional.nll_loss((mixed + 1e-8).log(), y)
    loss.backward()
    optimizer.step()
"""

NOT_LOG_PROBABILITIES = frozenset(
    {"linear", "conv", "relu", "softmax", "sigmoid", "tanh", "batch_norm", "dropout"}
)
FIXES = {
    "nll_loss": ("NLL loss", "use cross_entropy, or add log_softmax(dim=1)"),
    "ctc_loss": ("CTC loss", "add log_softmax(dim=2), over the labels"),
}


POOLS = re.compile(r"mean|interpolate|upsample\w*|(adaptive_?)?(avg|max)_?pool\dd")
"""What leaves raw scores raw; pooled log-probabilities are what somebody may mean to average."""


@rule.check
def not_log_probabilities(call: LossCall) -> Iterator[Finding]:
    last = _before_pooling(call)
    if call.loss not in FIXES or last is None or last.name not in NOT_LOG_PROBABILITIES:
        return
    probabilities = last.name == "softmax"
    usual, fix = FIXES[call.loss]
    name = named(call, usual)
    yield rule.finding(
        f"{name} is given probabilities where it needs their logarithm"
        if probabilities
        else f"{name} is given raw scores where it needs log-probabilities",
        place_of(call),
        evidence={"input of the loss": chain_seen(call)},
        fix="use log_softmax in place of softmax" if probabilities else fix,
        confidence=0.95,
    )


def _before_pooling(call: LossCall) -> Op | None:
    behind = next((op for op in call.made_by if not POOLS.fullmatch(op.name)), None)
    return behind if behind is not None and behind.name in ("linear", "conv") else call.last_op
