"""Softmax is applied before a cross-entropy that applies it again.

## What it finds
`cross_entropy` or `CrossEntropyLoss` whose input is the result of a softmax; the same with `log_softmax` and
`nll_loss` in two steps, where the `log_softmax` is taken of probabilities.

## Why it hurts
Cross-entropy expects raw scores and normalises them itself. Probabilities lie between 0 and 1, so
the second softmax can never be confident: with ten classes its largest output is 0.23. The loss
has a floor far above zero and the gradient through two softmaxes is small, so training is slow
and stalls early.

## What to do
Pass the raw scores to the loss and take the softmax only where probabilities are shown:

    loss = cross_entropy(model(x), y)
    probabilities = model(x).softmax(-1)

## Not the fix
Raising the learning rate to make up for the flat loss: the floor stays.

## Known limits
A `log_softmax` before cross-entropy changes nothing but costs time: it is reported as advice.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import LossCall, Source
from gradclinic.findings import Finding, Severity
from gradclinic.rules._rule import Rule
from gradclinic.rules.loss._chain import chain_seen, named, place_of, where_to_mend

rule = Rule(
    "GC401",
    "double-softmax",
    Severity.ERROR,
    since="0.1.0",
    sources=(Source.STATIC, Source.RUNTIME),
    topic="loss and its input",
    explains=("GC612", "GC306", "GC602"),
)

BAD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3), nn.Softmax(dim=1))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    x = torch.randn(32, 4)
    y = x[:, :3].argmax(1)
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
"""

BAD_IN_TWO_STEPS = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3), nn.Softmax(dim=1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    x = torch.randn(32, 4)
    y = x[:, :3].argmax(1)
    optimizer.zero_grad()
    loss = nn.functional.nll_loss(nn.functional.log_softmax(model(x), dim=1), y)
    loss.backward()
    optimizer.step()
"""

GOOD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    x = torch.randn(32, 4)
    y = x[:, :3].argmax(1)
    optimizer.zero_grad()
    logits = model(x)
    loss = criterion(logits, y)
    loss.backward()
    optimizer.step()
    confidence = logits.softmax(dim=1).max()
"""

GOOD_ATTENTION = """
import torch
from torch import nn


class Attend(nn.Module):
    def __init__(self):
        super().__init__()
        self.score = nn.Linear(4, 1)
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        weights = torch.softmax(self.score(x), dim=1)
        return self.head((weights * x).sum(1))


torch.manual_seed(0)
model = Attend()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    x = torch.randn(32, 5, 4)
    y = x.mean(1)[:, :3].argmax(1)
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
"""


@rule.check
def normalised_twice(call: LossCall) -> Iterator[Finding]:
    last = call.last_op
    if last is None or call.loss not in ("cross_entropy", "nll_loss"):
        return
    made, loss = [op.name for op in call.made_by[:2]], named(call, "cross-entropy")
    harmless = made[0] == "log_softmax"
    told = (
        f"{loss} takes the log-softmax of a log-softmax: harmless, and work for nothing"
        if harmless
        else f"{loss} is given probabilities: softmax is applied twice"
    )
    if made == ["log_softmax", "softmax"]:
        last, harmless = call.made_by[1], False
        loss = named(call, "the loss")
        told = f"{loss} is given the log-softmax of probabilities: softmax is applied twice"
    elif call.loss != "cross_entropy" or made[0] not in ("softmax", "log_softmax"):
        return
    yield rule.finding(
        told,
        place_of(call),
        evidence={"input of the loss": chain_seen(call)},
        fix=f"remove the {last.name}" + where_to_mend(call, last) + " from the path to the loss",
        confidence=0.95,
        severity=Severity.INFO if harmless else None,
    )
