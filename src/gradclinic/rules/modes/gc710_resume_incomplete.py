"""A checkpoint to go on from lacks part of the state.

## What it finds
A saved dictionary with weights and a position (epoch or step) but without the state of an
optimizer, schedule or scaler that the run uses, and that it saves nowhere else.

## Why it hurts
A resumed run starts with empty moments, the schedule at its beginning and the scale at its first
value: a spike in the loss at every resume, and a result nobody can reproduce.

## What to do
Save and load all of them:

    torch.save({"epoch": epoch, "model": model.state_dict(), "optimizer": optimizer.state_dict(),
                "schedule": schedule.state_dict(), "scaler": scaler.state_dict()}, path)

## Not the fix
A warm-up after each resume: it hides the spike.

## Known limits
Weights saved alone are taken to be for use, not for resuming; so is a file called best, and one that is
read back only when the training is over. In source a note only, unless the file
also loads a checkpoint to go on from.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import Saves, Source
from gradclinic.facts.repeat import Resume
from gradclinic.findings import Finding, Severity
from gradclinic.rules._rule import Rule

rule = Rule(
    "GC710",
    "resume-incomplete",
    Severity.WARNING,
    since="0.1.0",
    sources=(Source.STATIC, Source.RUNTIME, Source.PROBE),
    topic="loading and saving",
)

BAD = """
import io

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(4):
    for step in range(5):
        x = torch.randn(32, 4)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
        loss.backward()
        optimizer.step()
    torch.save({"epoch": epoch, "model": model.state_dict()}, io.BytesIO())
"""

GOOD = """
import io

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(4):
    for step in range(5):
        x = torch.randn(32, 4)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
        loss.backward()
        optimizer.step()
    state = {"epoch": epoch, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
    torch.save(state, io.BytesIO())
torch.save(model.state_dict(), io.BytesIO())
"""

KEPT = ("optimizer", "schedule", "scaler")


@rule.check
def part_left_out(saves: Saves) -> Iterator[Finding]:
    lacking = [part for part in KEPT if part in saves.exists and part not in saves.holds]
    if lacking:
        yield rule.finding(
            f"the checkpoint has weights and a position, but no {' and no '.join(lacking)}",
            saves.where,
            evidence={"saved": ", ".join(sorted(saves.holds)), "not saved": ", ".join(lacking)},
            fix="save and load " + " and ".join(f"{part}.state_dict()" for part in lacking),
            severity=None if saves.resumed else Severity.INFO,
            confidence=0.85 if saves.resumed else 0.6,
        )


@rule.check
def goes_on_differently(seen: Resume) -> Iterator[Finding]:
    if seen.exact:
        return
    lost = ", ".join(seen.not_restored[:6]) or "something outside the model, the optimizer and the parts"
    yield rule.finding(
        f"training goes on differently after loading its checkpoint: {lost} did not come back",
        seen.where,
        evidence={
            "first difference": f"step {seen.differs_at} after the checkpoint",
            "largest difference of a weight": f"{seen.distance:.2g} after {seen.steps} steps",
        },
        fix="save and load it with the rest",
        confidence=0.95,
    )
