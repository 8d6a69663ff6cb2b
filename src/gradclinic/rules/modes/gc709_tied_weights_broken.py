"""Weights that are meant to be one tensor are two parameters.

## What it finds
Two parameters of a model that are different objects over the same memory, as
`nn.Parameter(other.weight)` or `a.weight.data = b.weight.data` make them; and an output layer that
begins with the very values of an embedding, in memory of its own.

## Why it hurts
They look tied and are not one parameter: each collects half of the gradient and keeps its own
optimizer state, the shared memory is updated twice per step, and the first `.to(device)`,
`deepcopy` or load separates them without a word.

## What to do
Assign the parameter itself: `head.weight = embedding.weight`.

## Not the fix
Copying the values once: they part at the first step.

## Known limits
Weights that were separated before the first step and hold other values are two ordinary tensors and
cannot be told from weights that were never tied.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import Census, Parameter, Source
from gradclinic.findings import Finding, Severity
from gradclinic.rules._rule import Rule

rule = Rule(
    "GC709",
    "tied-weights-broken",
    Severity.WARNING,
    since="0.1.0",
    sources=(Source.RUNTIME,),
    topic="registration",
)

BAD = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(11, 8)
        nn.init.normal_(self.embedding.weight, std=0.3)
        self.head = nn.Linear(8, 11, bias=False)
        self.head.weight = nn.Parameter(self.embedding.weight)

    def forward(self, tokens):
        return self.head(self.embedding(tokens))


torch.manual_seed(0)
model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
for step in range(20):
    tokens = torch.randint(11, (32,))
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(tokens), (tokens + 1) % 11)
    loss.backward()
    optimizer.step()
"""

BAD_COPIED = """
import torch
from torch import nn

torch.manual_seed(0)
embedding, head = nn.Embedding(11, 8), nn.Linear(8, 11, bias=False)
nn.init.normal_(embedding.weight, std=0.3)
head.weight = nn.Parameter(embedding.weight.detach().clone())
model = nn.Sequential(embedding, head)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
for step in range(20):
    tokens = torch.randint(11, (32,))
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(tokens), (tokens + 1) % 11)
    loss.backward()
    optimizer.step()
"""

GOOD = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(11, 8)
        nn.init.normal_(self.embedding.weight, std=0.3)
        self.head = nn.Linear(8, 11, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, tokens):
        return self.head(self.embedding(tokens))


torch.manual_seed(0)
model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
for step in range(20):
    tokens = torch.randint(11, (32,))
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(tokens), (tokens + 1) % 11)
    loss.backward()
    optimizer.step()
"""


@rule.check
def two_over_one_memory(census: Census) -> Iterator[Finding]:
    seen: dict[tuple[int, tuple[int, ...], str], Parameter] = {}
    for p in census.parameters:
        if p.copy_of:
            yield rule.finding(
                f"{p.name} begins as a copy of {p.copy_of}, and the two part at the first step",
                p.built,
                evidence={"shape": p.shape, "equal at the first step": "every value"},
                fix=f"assign the parameter itself: {p.name} = {p.copy_of}",
                confidence=0.9,
                subject=p.name,
            )
        if not p.storage or not p.registered or not p.trainable:
            continue
        other = seen.setdefault((p.storage, p.shape, p.model), p)
        if other is p:
            continue
        yield rule.finding(
            f"{p.name} and {other.name} share their memory but are two parameters",
            p.built,
            evidence={"shape": p.shape, "each in an optimizer": bool(p.holders and other.holders)},
            fix=f"assign the parameter itself: {p.name} = {other.name}",
            confidence=0.92,
            subject=p.name,
        )
