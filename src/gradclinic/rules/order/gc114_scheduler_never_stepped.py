"""A schedule was built and is never advanced.

## What it finds
A learning-rate schedule whose `step()` is not called in a run that updates its optimizer. So too one
that a module of Lightning gives back from `configure_optimizers` while it optimises by hand: the
trainer then advances no schedule.

## Why it hurts
The rate stays at the schedule's first value for the whole run. With a warm-up that is a tiny
fraction of the intended rate; with a decay the run never settles.

## What to do
Call `scheduler.step()` after `optimizer.step()`, once per update or per epoch as it was sized.

## Not the fix
Changing the base rate to make up for it.

## Known limits
A schedule handed to code that cannot be followed, to a trainer for instance, is not judged, nor is
one that keeps the rate as it is.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import ActorKind, EventKind, Source, Tape
from gradclinic.facts.rates import IdleSchedule
from gradclinic.findings import Finding, Severity
from gradclinic.rules._rule import Rule
from gradclinic.rules.order._schedules import schedules, unknown_calls

rule = Rule(
    "GC114",
    "scheduler-never-stepped",
    Severity.WARNING,
    since="0.1.0",
    sources=(Source.STATIC, Source.RUNTIME),
    topic="schedule advanced",
    needs=(ActorKind.SCHEDULE, EventKind.STEP),
    explains=("GC306",),
)

BAD = """
import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=5)
for step in range(20):
    x = torch.randn(8, 4)
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""

GOOD = """
import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=5)
for step in range(20):
    x = torch.randn(8, 4)
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
"""

GOOD_PART_OF_A_CHAIN = """
import torch
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
warmup = LinearLR(optimizer, start_factor=0.1, total_iters=5)
decay = CosineAnnealingLR(optimizer, T_max=15)
scheduler = SequentialLR(optimizer, [warmup, decay], milestones=[5])
for step in range(20):
    x = torch.randn(8, 4)
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
"""

ENOUGH_UPDATES = 3


@rule.check
def never_advanced(tape: Tape) -> Iterator[Finding]:
    for schedule, optimizer in schedules(tape):
        if not tape.shows_all_of(schedule):
            continue
        if tape.count(EventKind.SCHEDULE, schedule.id):
            continue
        if tape.count(EventKind.STEP, optimizer) < ENOUGH_UPDATES or unknown_calls(tape, schedule, optimizer):
            continue
        if any(schedule.id in a.of for a in tape.actors.values() if a.kind is ActorKind.SCHEDULE):
            continue
        built = next(tape.of_actor(schedule.id, EventKind.BUILD), None)
        if built is None:
            continue
        evidence: dict[str, object] = {"schedule": schedule.type or schedule.name}
        if tape.source is Source.RUNTIME:
            evidence["updates made"] = tape.count(EventKind.STEP, optimizer)
        yield rule.finding(
            f"{schedule.name} is built here and {schedule.name}.step() is never called",
            built,
            evidence=evidence,
            fix=f"call {schedule.name}.step() after {tape.name(optimizer)}.step()",
            confidence=0.9,
            subject=schedule.id,
        )


@rule.check
def left_to_the_trainer(seen: IdleSchedule) -> Iterator[Finding]:
    yield rule.finding(
        f"{seen.kind} is built here and nothing advances it: "
        "with automatic_optimization = False the trainer does not either",
        seen.where,
        fix="call step() on self.lr_schedulers() where an epoch or an update ends",
        confidence=0.9,
    )
