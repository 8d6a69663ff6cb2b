"""The loss scaler skipped an update and the schedule advanced anyway.

## What it finds
`scheduler.step()` after a `scaler.step(optimizer)` that made no update because the gradients
overflowed.

## Why it hurts
The schedule runs ahead of the updates. A few skips while the scale settles do little; a warm-up
that is over before the first update, or many skips, leave the run on the wrong part of its
schedule.

## What to do
Advance only when the update was made; a lowered scale tells that it was not:

    scale = scaler.get_scale()
    scaler.step(optimizer)
    scaler.update()
    if scaler.get_scale() >= scale:
        scheduler.step()

## Not the fix
Lowering `init_scale` until no step is skipped: small gradients then vanish in float16.

## Known limits
From source this is an advice: whether updates will be skipped is seen only in a run.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import Event, EventKind, Source, Tape
from gradclinic.findings import Finding, Severity
from gradclinic.rules._rule import Rule
from gradclinic.rules.order._schedules import schedules
from gradclinic.rules.order._wording import order_seen

rule = Rule(
    "GC115",
    "scheduler-advances-on-skipped-step",
    Severity.WARNING,
    since="0.1.0",
    sources=(Source.STATIC, Source.RUNTIME),
    topic="schedule and skipped updates",
    needs=(EventKind.SCHEDULE, EventKind.SCALER_UPDATE),
)

BAD = """
import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, total_iters=20)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127)
for step in range(20):
    x = torch.randn(8, 4)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    scheduler.step()
"""

GOOD = """
import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, total_iters=20)
scaler = torch.amp.GradScaler("cpu")
for step in range(20):
    x = torch.randn(8, 4)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    scaler.scale(loss).backward()
    scale = scaler.get_scale()
    scaler.step(optimizer)
    scaler.update()
    if scaler.get_scale() >= scale:
        scheduler.step()
"""

SETTLING = 3
"""Skips while the scale finds its place are part of every fp16 run."""


@rule.check
def advanced_without_update(tape: Tape) -> Iterator[Finding]:
    for schedule, optimizer in schedules(tape):
        ticks = [e for e in tape.of_actor(schedule.id, EventKind.SCHEDULE) if not e.attrs.get("guarded")]
        pairs = [(step, tick) for tick in ticks if (step := _step_before(tape, optimizer, tick))]
        idle = [(step, tick) for step, tick in pairs if step.attrs.get("skipped")]
        ran = tape.source is Source.RUNTIME
        through_scaler = [(step, tick) for step, tick in pairs if step.attrs.get("scaler")]
        if not (idle if ran else through_scaler):
            continue
        step, tick = (idle or through_scaler)[0]
        many = ran and len(idle) >= SETTLING and len(idle) >= 0.05 * len(ticks)
        evidence: dict[str, object] = {
            "order seen": order_seen([step, tick], EventKind.STEP, EventKind.SCHEDULE)
        }
        if ran:
            evidence["ticks without an update"] = f"{len(idle)} of {len(ticks)}"
        yield rule.finding(
            f"{schedule.name}.step() ran {len(idle)} times although the scaler had skipped the update"
            if ran
            else f"{schedule.name}.step() also runs when the scaler skips the update",
            tick,
            evidence=evidence,
            fix="advance the schedule only if scaler.get_scale() did not fall across scaler.update()",
            confidence=0.9 if many else 0.5,
            severity=None if many else Severity.INFO,
            subject=schedule.id,
        )


def _step_before(tape: Tape, optimizer: str, tick: Event) -> Event | None:
    """The optimizer step this tick answers to; none if it answers to many, as once an epoch, or to none."""
    steps = []
    for event in reversed(tape.events[: tick.index]):
        if event.kind is EventKind.STEP and event.actor == optimizer:
            steps.append(event)
        if event.kind is EventKind.SCHEDULE and event.actor == tick.actor:
            break
    return steps[0] if len(steps) == 1 else None
