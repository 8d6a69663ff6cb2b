"""A kept copy of the weights is the live weights themselves.

## What it finds
A second model whose parameters share memory with the model that trains, an average that the live
weights are mixed into and that is their own memory, a remembered state_dict that is loaded back
after updates and turns out to be the model's own memory. A model that is given its own state before
any update is noted.

## Why it hurts
`state_dict()`, `p.data` and `copy.copy` hand out the same memory. An average, a target network
or "the best weights so far" kept that way follows every update: it never differs from the current
weights.

## What to do
Copy: `copy.deepcopy(model)`, `copy.deepcopy(model.state_dict())`, or
`{key: value.detach().clone() for key, value in model.state_dict().items()}`.

## Not the fix
Lowering the decay of the average: it has nothing to average.

## Known limits
An alias is known when a model holds it, when it is averaged in place in the first steps, or when it
is loaded back. From source it is
known where keeping and using it stand in one file.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import Census, Load, Parameter, Source
from gradclinic.facts.averages import LiveCopy, SelfAverage
from gradclinic.findings import Finding, Severity
from gradclinic.rules._naming import listed
from gradclinic.rules._rule import Rule

rule = Rule(
    "GC713",
    "average-aliases-weights",
    Severity.ERROR,
    since="0.1.0",
    sources=(Source.STATIC, Source.RUNTIME),
    topic="loading and saving",
)

BAD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
best, lowest = None, float("inf")
for step in range(20):
    x = torch.randn(32, 4)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
    if loss.item() < lowest:
        best, lowest = model.state_dict(), loss.item()
model.load_state_dict(best)
"""

BAD_TARGET = """
import torch
from torch import nn

torch.manual_seed(0)
model, average = nn.Linear(4, 1), nn.Linear(4, 1)
for kept, new in zip(average.parameters(), model.parameters()):
    kept.data = new.data
    kept.requires_grad = False
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
for step in range(20):
    x = torch.randn(32, 4)
    with torch.no_grad():
        goal = 0.5 * average(x) + 0.5 * x.sum(1, keepdim=True)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), goal)
    loss.backward()
    optimizer.step()
"""

BAD_AVERAGE = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
shadow = {name: p.detach() for name, p in model.named_parameters()}
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
for step in range(20):
    x = torch.randn(32, 4)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
    for name, p in model.named_parameters():
        shadow[name].mul_(0.9).add_(p.detach(), alpha=0.1)
"""

BAD_WRITTEN_OUT = """
import copy

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 1))
average = copy.copy(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
for step in range(20):
    x = torch.randn(32, 4)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
    for slow, live in zip(average.parameters(), model.parameters()):
        slow.data = 0.9 * slow.data + live.data * 0.1
"""

GOOD_GRADIENT_SHRUNK = """
import torch
from torch import nn

torch.manual_seed(0)
words, head = nn.Embedding(20, 8), nn.Linear(8, 20)
optimizer = torch.optim.Adam([*words.parameters(), *head.parameters()], lr=0.01)
for step in range(20):
    ids = torch.randint(0, 20, (32,))
    optimizer.zero_grad()
    weight = words.weight * 0.1 + words.weight.detach() * 0.9
    loss = nn.functional.cross_entropy(head(nn.functional.embedding(ids, weight)), ids)
    loss.backward()
    optimizer.step()
"""

GOOD_WRITTEN_OUT = """
import copy

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 1))
average = copy.deepcopy(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
for step in range(20):
    x = torch.randn(32, 4)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
    for slow, live in zip(average.parameters(), model.parameters()):
        slow.data = 0.9 * slow.data + live.data * 0.1
"""

GOOD = """
import copy

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
average = copy.deepcopy(model).requires_grad_(False)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
best, lowest = None, float("inf")
for step in range(20):
    x = torch.randn(32, 4)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for kept, new in zip(average.parameters(), model.parameters()):
            kept.lerp_(new, 0.1)
        average(x)
    if loss.item() < lowest:
        best, lowest = copy.deepcopy(model.state_dict()), loss.item()
model.load_state_dict(best)
"""


OFTEN = 2


@rule.check
def loaded_onto_itself(load: Load) -> Iterator[Finding]:
    if load.aliases * 2 > load.wanted and load.updates_before:
        yield rule.finding(
            f"the state loaded back into {load.model} is its own memory: nothing was kept",
            load.where,
            evidence={"entries that are the model's own": f"{load.aliases} of {load.wanted}"},
            fix="keep a copy: copy.deepcopy(model.state_dict())",
            confidence=0.96,
            subject=load.model,
        )
    # Some of its own entries are those that a checkpoint had no others for. All of them: another model was
    # meant that is this one, or a checkpoint of which nothing fitted, or none was asked for.
    elif load.aliases == load.wanted > 0 and not load.where.via:
        yield rule.finding(
            f"{load.model} is given its own state: nothing is copied and nothing loaded",
            load.where,
            evidence={"entries that are the model's own": f"{load.aliases} of {load.wanted}"},
            fix="if a second model was meant, make it one: copy.deepcopy(model); "
            "if a checkpoint, compare its keys",
            confidence=0.7,
            severity=Severity.INFO,
            subject=load.model,
        )


@rule.check
def mixed_into_itself(average: SelfAverage) -> Iterator[Finding]:
    if average.times >= OFTEN:
        yield rule.finding(
            f"{listed(average.parameters, most=2)} are averaged into their own memory: there is no average",
            average.where,
            evidence={"same memory": listed(average.parameters), "times seen": average.times},
            fix="keep copies: p.detach().clone(), or copy.deepcopy(model)",
            confidence=0.96,
        )


@rule.check
def kept_as_it_lives(kept: LiveCopy) -> Iterator[Finding]:
    yield rule.finding(
        f"{kept.name} is no copy of the weights of {kept.of}: it changes with every update of them",
        kept.where,
        evidence={"wanted as it was": str(kept.used)},
        fix="keep a copy: copy.deepcopy(…)",
        confidence=0.9,
        subject=kept.name,
    )


@rule.check
def two_models_over_one_memory(census: Census) -> Iterator[Finding]:
    live: dict[tuple[int, tuple[int, ...]], Parameter] = {
        (p.storage, p.shape): p for p in census.parameters if p.storage and p.holders and p.reached
    }
    shared = [
        (p, live[p.storage, p.shape])
        for p in census.parameters
        if p.registered and not p.holders and (p.storage, p.shape) in live
    ]
    shared = [(copy, original) for copy, original in shared if copy.model != original.model]
    if shared:
        copy, original = shared[0]
        yield rule.finding(
            f"{copy.name} is the same memory as {original.name}, which is being trained",
            copy.built,
            evidence={"shared": listed(copy.name for copy, _ in shared)},
            fix="make the copy with copy.deepcopy(), or clone() each tensor",
            confidence=0.95,
            subject=copy.model,
        )
