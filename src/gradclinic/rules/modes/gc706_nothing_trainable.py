"""An optimizer has nothing to train.

## What it finds
An optimizer that steps although none of its parameters requires a gradient: everything was
frozen, or adapters matched no module of the model. Also one that trains nothing but the bias of a
single layer whose weight is frozen like all others.

## Why it hurts
The loop runs, the loss is printed, and no weight changes.

## What to do
Print what is trainable before training: `sum(p.numel() for p in model.parameters() if
p.requires_grad)`. Unfreeze what should learn, or correct the names that adapters look for.

## Not the fix
`loss.requires_grad_()`: it silences the error of backward and leaves the model untouched.

## Known limits
A model of which only a small part trains is ordinary and not reported.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from gradclinic.facts import Census, Parameter, Source
from gradclinic.findings import Finding, Severity
from gradclinic.rules._naming import counted
from gradclinic.rules._rule import Rule

rule = Rule(
    "GC706",
    "nothing-trainable",
    Severity.ERROR,
    since="0.1.0",
    sources=(Source.RUNTIME,),
    topic="frozen parts",
    explains=("GC612",),
    subsumes=("GC104", "GC105"),
)

BAD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
for name, parameter in model.named_parameters():
    parameter.requires_grad = "lora" in name
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(20):
    x = torch.randn(32, 4)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.requires_grad_()
    loss.backward()
    optimizer.step()
"""

BAD_WITH_ERROR = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)).requires_grad_(False)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(20):
    x = torch.randn(32, 4)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
"""

BAD_ONE_BIAS = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)).requires_grad_(False)
for name, parameter in model.named_parameters():
    if "lora" in name or name == "2.bias":
        parameter.requires_grad = True
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3)
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

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
for name, parameter in model.named_parameters():
    parameter.requires_grad = name.endswith("bias")
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(20):
    x = torch.randn(32, 4)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
"""


@rule.check
def too_little_trains(census: Census) -> Iterator[Finding]:
    only = _only_bias(census)
    if only is not None and len(census.holders) == 1:
        holder = census.holders[0]
        yield rule.finding(
            f"{only.name} is all that trains: the weight of its own layer and every other are frozen",
            holder.built,
            evidence={
                "trainable": f"{only.name}, {counted(math.prod(only.shape), 'number')}",
                "frozen": counted(sum(not p.trainable for p in census.parameters), "tensor"),
            },
            fix="correct the names that adapters look for, or unfreeze what should learn",
            confidence=0.9,
            subject=holder.id,
        )
    for holder in census.holders:
        held = [p for p in census.parameters if holder.id in p.holders]
        if held and not any(p.trainable or p.reached for p in held):
            yield rule.finding(
                f"none of the {counted(len(held), 'parameter')} of {holder.name} requires a gradient",
                holder.built,
                evidence={"held": counted(len(held), "tensor"), "trainable": 0, "steps taken": holder.steps},
                fix="set requires_grad on what should learn, before the optimizer is built",
                confidence=0.97,
                subject=holder.id,
            )


def _only_bias(census: Census) -> Parameter | None:
    """The bias of one layer, when it is the only thing that trains and its own weight does not."""
    trained = [p for p in census.parameters if p.trainable and p.holders and p.registered]
    frozen = {p.name for p in census.parameters if not p.trainable and p.registered}
    if len(trained) != 1 or len(trained) != sum(p.trainable for p in census.parameters):
        return None
    module, _, leaf = trained[0].name.rpartition(".")
    alone = leaf == "bias" and f"{module}.weight" in frozen and len(frozen) > 1
    return trained[0] if alone else None
