"""Parameters or layers sit in a plain list or dict, where the model cannot see them.

## What it finds
A module whose attribute is a Python list, tuple or dict that holds layers or parameters, which
receive gradients and which no optimizer holds, because `model.parameters()` does not list them.

## Why it hurts
They are not trained, not moved by `.to(device)`, not switched by `train()` and `eval()`, and not
in the state_dict.

## What to do
`nn.ModuleList`, `nn.ModuleDict`, `nn.ParameterList` or `nn.ParameterDict` in place of the plain
container.

## Not the fix
Passing them to the optimizer by hand: they train, and are still missing from every checkpoint.

## Known limits
Containers up to two levels deep are looked into.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import Census, Source
from gradclinic.findings import Finding, Severity
from gradclinic.rules._naming import listed
from gradclinic.rules._rule import Rule

rule = Rule(
    "GC705",
    "unregistered-parameters",
    Severity.ERROR,
    since="0.1.0",
    sources=(Source.RUNTIME,),
    topic="registration",
    explains=("GC612", "GC306"),
)

BAD = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(4, 4) for _ in range(2)]
        self.head = nn.Linear(4, 1)

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return self.head(x)


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(20):
    x = torch.randn(32, 4)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
"""

GOOD = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(2))
        self.order = [self.layers[1], self.layers[0]]
        self.head = nn.Linear(4, 1)

    def forward(self, x):
        for layer in self.order:
            x = torch.relu(layer(x))
        return self.head(x)


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(20):
    x = torch.randn(32, 4)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
"""

GOOD_TEACHER_OUT_OF_SIGHT = """
import torch
from torch import nn


class Distilled(nn.Module):
    def __init__(self, teacher):
        super().__init__()
        self.teacher = [teacher]
        self.student = nn.Linear(4, 1)

    def forward(self, x):
        with torch.no_grad():
            goal = self.teacher[0](x)
        return nn.functional.mse_loss(self.student(x), goal)


torch.manual_seed(0)
model = Distilled(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)).eval())
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(20):
    optimizer.zero_grad()
    loss = model(torch.randn(32, 4))
    loss.backward()
    optimizer.step()
"""


@rule.check
def out_of_sight(census: Census) -> Iterator[Finding]:
    places: dict[str, list[str]] = {}
    for p in census.parameters:
        if p.hidden_in and p.trainable and p.reached and not p.holders and not p.changed:
            places.setdefault(p.hidden_in, []).append(p.name)
    for place, names in places.items():
        first = next(p for p in census.parameters if p.name == names[0])
        yield rule.finding(
            f"{place} hides its parameters from the model: they get gradients and are never updated",
            first.built,
            evidence={"not registered": listed(names)},
            fix="use nn.ModuleList, nn.ModuleDict, nn.ParameterList or nn.ParameterDict",
            confidence=0.97,
            subject=place,
        )
