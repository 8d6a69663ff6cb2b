"""The schedule advances before the optimizer has stepped.

## What it finds
`scheduler.step()` ahead of `optimizer.step()` in the iteration or the epoch, so that the first
tick comes before the first update.

## Why it hurts
The first value of the schedule is never used and every later one comes a tick early. With a
warm-up the first update already has a raised rate; with a decay per epoch the last epoch runs a
notch too low.

## What to do
Step the optimizer first:

    optimizer.step()
    scheduler.step()

and a schedule counted in epochs at the end of the epoch.

## Not the fix
Silencing torch's warning, or calling `optimizer.step()` once before training begins.

## Known limits
Schedules that set the rate from a number passed to `step(epoch)`, and schedules that are not
torch's, may be called first on purpose and are not judged. Neither are ticks made up for when a
run is resumed, and functions that by their name look for a rate: those sweep over many.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import pairwise

from gradclinic.facts import Event, EventKind, Source, Tape, cadence
from gradclinic.findings import Finding, Fix, Move, Severity, Side
from gradclinic.rules._rule import Rule
from gradclinic.rules.order._schedules import schedules, training_begins
from gradclinic.rules.order._wording import order_seen

rule = Rule(
    "GC112",
    "scheduler-before-optimizer",
    Severity.ERROR,
    since="0.1.0",
    sources=(Source.STATIC, Source.RUNTIME),
    topic="schedule order",
    needs=(EventKind.SCHEDULE, EventKind.STEP),
)

_FINDS_RATE = re.compile(
    r"(^|[._])(lr_?find(er)?|find_?lr|find_(best_)?(learning_)?rate|range_test)($|[._])", re.I
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
    scheduler.step()
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

GOOD_FAST_FORWARD_ON_RESUME = """
import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=5)
for done in range(3):
    scheduler.step()
for step in range(20):
    x = torch.randn(8, 4)
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
"""


@rule.check
def advanced_too_early(tape: Tape) -> Iterator[Finding]:
    for schedule, optimizer in schedules(tape):
        stepped = tuple(tape.of_actor(optimizer, EventKind.STEP))
        steps = [e.index for e in stepped]
        ticks = tuple(tape.of_actor(schedule.id, EventKind.SCHEDULE))
        built = next((e.index for e in tape.of_actor(optimizer, EventKind.BUILD)), -1)
        unknown = [
            e.index
            for e in tape.of_kind(EventKind.OPAQUE)
            # What comes before there is an optimizer, such as a pre-training, cannot have stepped it.
            if e.concerns(optimizer)
            and e.index > built
            and not (e.attrs.get("prepares") and e.index < training_begins(tape))
        ]
        for _, at_site in cadence(ticks):
            first, *later = at_site
            # A path may turn to another phase of the training after its first pass. One tick alone of what is
            # built out of sight tells too little: it may set the rate of the step to come.
            again = later or (first.attrs.get("looped") and schedule.attrs.get("torch"))
            # One that follows a metric skips no rate if it is told where the training begins.
            again = again and (later or schedule.attrs.get("kind") != "ReduceLROnPlateau")
            if not again or not steps or first.index > steps[0] or first.attrs.get("explicit"):
                continue
            if any(index < first.index for index in unknown) or _waits(first, stepped):
                continue
            if _begins_later(tape, first, at_site[-1], stepped) or _looks_for_a_rate(first):
                continue
            apart = all(any(a.index < step < b.index for step in steps) for a, b in pairwise(at_site))
            if not apart and not _leads_each_step(tape, at_site, steps):
                continue  # Ticks on their own between updates: another cadence, not another order
            yield rule.finding(
                f"{schedule.name}.step() comes before {tape.name(optimizer)}.step(): "
                "the first learning rate of the schedule is skipped",
                first,
                also=(stepped[0],),
                evidence={
                    "order seen": order_seen(
                        tape.events[: (later[0].index if later else steps[0]) + 1],
                        EventKind.BACKWARD,
                        EventKind.SCHEDULE,
                        EventKind.STEP,
                    )
                },
                fix=Fix(
                    f"move {schedule.name}.step() below {tape.name(optimizer)}.step()",
                    changes=(Move(first.where, Side.AFTER, stepped[0].where, into=False),),
                    safe=len(tape.optimizers) == 1,
                ),
                confidence=0.95,
                subject=schedule.id,
            )


def _looks_for_a_rate(tick: Event) -> bool:
    """Whether it sweeps the rates to find one: which of them the first batch gets is all the same."""
    stem = os.path.basename(tick.where.path)
    return any(map(_FINDS_RATE.search, (stem, tick.where.function or "")))


def _waits(tick: Event, steps: tuple[Event, ...]) -> bool:
    """`if epoch >= warm: scheduler.step()`: steps that do not wait for the same have come before it."""
    later = tick.attrs.get("later", ())
    return any(step.attrs.get("later", ())[: len(later)] != later for step in steps)


def _begins_later(tape: Tape, first: Event, last: Event, steps: tuple[Event, ...]) -> bool:
    """Whether others were trained before the first tick, and this one is from a later epoch on."""
    trained = any(event.index < first.index for event in tape.of_kind(EventKind.STEP))
    return trained and last.index > steps[-1].index


def _leads_each_step(tape: Tape, ticks: list[Event], steps: list[int]) -> bool:
    """Whether the batch that a step ends has ticked before it: so it is in a window, ticking every batch."""
    data = [event.index for event in tape.events if event.brings_data]
    begins = [max((index for index in data if index < step), default=None) for step in steps]
    return all(
        begin is not None and any(begin < tick.index < step for tick in ticks)
        for begin, step in zip(begins, steps, strict=True)
    )
