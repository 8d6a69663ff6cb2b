"""The model depends on a tensor that its state_dict does not hold.

## What it finds
A tensor in a plain attribute of a module that was computed from data (a mean, a standard deviation,
a running average), is read when the model is called, and is neither a buffer nor a parameter.

## Why it hurts
`state_dict()` leaves it out and `load_state_dict()` does not notice: the reloaded model normalises
with other numbers and is wrong without an error. `.to(device)` leaves it behind as well.

## What to do
`self.register_buffer("mean", data.mean(0))`. Assigning to the name afterwards keeps it a buffer.

## Not the fix
Computing it anew from whatever data is at hand when the model is loaded.

## Known limits
Recognised by the assignment in the module's class. Advice only, until the run saves the model's
state_dict and the tensor is not saved beside it.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import Source
from gradclinic.facts.plain_state import PlainState
from gradclinic.findings import Finding, Severity
from gradclinic.rules._rule import Rule

rule = Rule(
    "GC712",
    "state-not-registered",
    Severity.WARNING,
    since="0.1.0",
    sources=(Source.RUNTIME,),
    topic="registration",
)

BAD = """
import torch
from torch import nn


class Scaled(nn.Module):
    def __init__(self, data):
        super().__init__()
        self.mean = data.mean(0)
        self.layer = nn.Linear(4, 1)

    def forward(self, x):
        return self.layer(x - self.mean)


torch.manual_seed(0)
data = 3 + torch.randn(256, 4)
model = Scaled(data)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(20):
    x = data[torch.randint(256, (32,))]
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True) - 12)
    loss.backward()
    optimizer.step()
torch.save(model.state_dict(), "model.pt")
"""

GOOD = """
import torch
from torch import nn


class Scaled(nn.Module):
    def __init__(self, data):
        super().__init__()
        self.register_buffer("mean", data.mean(0))
        self.frequencies = 1.7 ** torch.arange(4)
        self.layer = nn.Linear(4, 1)

    def forward(self, x):
        return self.layer((x - self.mean) * self.frequencies)


torch.manual_seed(0)
data = 3 + torch.randn(256, 4)
model = Scaled(data)
optimizer = torch.optim.SGD(model.parameters(), lr=0.005)
for step in range(20):
    x = data[torch.randint(256, (32,))]
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True) - 12)
    loss.backward()
    optimizer.step()
torch.save(model.state_dict(), "model.pt")
"""


@rule.check
def lost_on_reload(state: PlainState) -> Iterator[Finding]:
    yield rule.finding(
        f"{state.name} is a plain tensor made of data: no state_dict holds it"
        + (", and one was saved" if state.saved else ""),
        state.where,
        evidence={"assigned": state.assigned, "state_dict saved without it": state.saved},
        fix=f'self.register_buffer("{state.name.rpartition(".")[2]}", …)',
        confidence=0.9 if state.saved else 0.6,
        severity=None if state.saved else Severity.INFO,
        subject=state.name,
    )
