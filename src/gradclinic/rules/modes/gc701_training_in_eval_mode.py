"""Updates are made while the model is in eval mode.

## What it finds
Optimizer steps whose forward ran with the whole model in eval mode, although it has dropout or
batch-norm layers: often after a validation that called `model.eval()` and nothing called
`model.train()` again.

## Why it hurts
Dropout does not regularise and batch-norm normalises by old statistics that it no longer updates.
The run looks fine and generalises worse, or diverges once the statistics are far off.

## What to do
Call `model.train()` at the start of every training epoch, and `model.eval()` before validation.

## Not the fix
Removing `model.eval()`: then the validation is wrong.

## Known limits
Batch-norm layers with frozen weights may well stay in eval mode, and are not counted. A model in
train mode with some parts in eval mode is taken as meant. From source, only training that follows an
evaluation is judged, or another forward that `eval()` was called for in the middle of a batch:
`model.eval()` right before the training loop is taken as meant. An `eval()` in
another file is told at the training forward that suffers from it.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import Location, ModeOfTraining, Source
from gradclinic.findings import Finding, Severity
from gradclinic.rules._naming import counted, listed
from gradclinic.rules._rule import Rule

rule = Rule(
    "GC701",
    "training-in-eval-mode",
    Severity.ERROR,
    since="0.1.0",
    sources=(Source.STATIC, Source.RUNTIME),
    topic="train and eval mode",
)

BAD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
for epoch in range(4):
    for step in range(10):
        x = torch.randn(32, 4)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        x = torch.randn(32, 4)
        print(nn.functional.mse_loss(model(x), x.sum(1, keepdim=True)).item())
"""

GOOD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
for epoch in range(4):
    model.train()
    for step in range(10):
        x = torch.randn(32, 4)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        x = torch.randn(32, 4)
        print(nn.functional.mse_loss(model(x), x.sum(1, keepdim=True)).item())
"""

GOOD_NO_LAYER_CARES = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 16), nn.LayerNorm(16), nn.ReLU(), nn.Linear(16, 1)).eval()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
for step in range(20):
    x = torch.randn(32, 4)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
"""

ENOUGH_UPDATES = 3


@rule.check
def updated_in_eval_mode(mode: ModeOfTraining) -> Iterator[Finding]:
    if mode.in_eval is not None and mode.in_eval < ENOUGH_UPDATES:
        return
    evidence = {"training forward": str(mode.where)}
    if mode.set_at is not None:
        evidence["put in eval mode"] = str(mode.set_at)
    if mode.layers:
        evidence["layers that care"] = listed(mode.layers)
    if mode.in_eval is None:
        message = f"training goes on in eval mode after the evaluation of {mode.model}"
    else:
        message = f"{counted(mode.in_eval, 'update')} of {mode.model} were made in eval mode"
        evidence["updates"] = f"{mode.in_train} in train mode, {mode.in_eval} in eval mode"
    yield rule.finding(
        message,
        _to_mend(mode),
        evidence=evidence,
        fix=f"call {mode.model}.train() before the training steps that follow",
        confidence=0.95 if mode.in_train else 0.9,
        subject=mode.model,
    )


def _to_mend(mode: ModeOfTraining) -> Location | None:
    """The eval() that is not taken back; one in another file serves many, whose training is to be mended."""
    apart = mode.set_at is not None and mode.where is not None and mode.set_at.path != mode.where.path
    return mode.where if apart else mode.set_at or mode.where
