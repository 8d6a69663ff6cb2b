"""A sigmoid feeds a loss that applies the sigmoid itself.

## What it finds
`binary_cross_entropy_with_logits` or `BCEWithLogitsLoss` whose input is the result of a sigmoid, or of a
softmax, which lies between 0 and 1 as well.

## Why it hurts
The loss squashes again what is already between 0 and 1: the probability it sees lies between 0.5
and 0.73, whatever the model says. Negatives can never be learned to be confident and the loss has
a floor of about 0.3 to 0.7.

## What to do
Give the loss the raw score, and take the sigmoid only where probabilities are shown.

## Not the fix
Switching to `BCELoss` to keep the sigmoid: it works, with less numerical room.

## Known limits
Sigmoids inside the network, as in gates, do not count: only the last operation before the loss.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import LossCall, Source
from gradclinic.findings import Finding, Severity
from gradclinic.rules._rule import Rule
from gradclinic.rules.loss._chain import chain_seen, named, place_of, where_to_mend

rule = Rule(
    "GC402",
    "sigmoid-before-logit-loss",
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
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1), nn.Sigmoid())
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    x = torch.randn(32, 4)
    y = (x.sum(1, keepdim=True) > 0).float()
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
"""

BAD_SOFTMAX = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3), nn.Softmax(dim=1))
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    x = torch.randn(32, 4)
    y = nn.functional.one_hot(x[:, :3].argmax(1), 3).float()
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
"""

GOOD = """
import torch
from torch import nn


class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        self.value = nn.Linear(4, 16)
        self.gate = nn.Linear(4, 16)
        self.head = nn.Linear(16, 1)

    def forward(self, x):
        return self.head(self.value(x) * torch.sigmoid(self.gate(x)))


torch.manual_seed(0)
model = Gated()
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    x = torch.randn(32, 4)
    y = (x.sum(1, keepdim=True) > 0).float()
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
"""


PROBABILITIES = ("sigmoid", "softmax")


@rule.check
def squashed_twice(call: LossCall) -> Iterator[Finding]:
    last = call.last_op
    if call.loss != "binary_cross_entropy_with_logits" or last is None or last.name not in PROBABILITIES:
        return
    loss = named(call, "the loss")
    yield rule.finding(
        f"{loss} expects raw scores and is given the result of a sigmoid: it is applied twice"
        if last.name == "sigmoid"
        else f"{loss} expects raw scores and is given probabilities: a sigmoid is applied to a softmax",
        place_of(call),
        evidence={"input of the loss": chain_seen(call)},
        fix=f"remove the {last.name}" + where_to_mend(call, last) + " from the path to the loss",
        confidence=0.95,
    )
