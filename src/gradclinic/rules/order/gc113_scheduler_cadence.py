"""The schedule is advanced at another pace than its length was computed in.

## What it finds
A schedule sized in optimizer updates that is stepped once per epoch or per micro-batch, or one
sized in epochs that is stepped on every batch. A decay every `epochs // 3` steps, or at milestones that
are counted in epochs, is sized in epochs too.

## Why it hurts
Stepped too rarely, the rate stays near its first value: a warm-up never ends, a decay never
comes. Stepped too often, it is at its floor after a fraction of the run, or climbs back up.

## What to do
Step the schedule once per unit it was sized in: after each `optimizer.step()` for `total_steps`,
`T_max` or `num_training_steps` counted in updates, at the end of each epoch for epochs. Under
accumulation an update is a window, not a batch.

## Not the fix
Tuning the base rate: the shape of the schedule stays wrong.

## Known limits
From source, the unit is read off how the length was written; from a run, off the counts at its
end. Where neither is clear, nothing is said, nor where each step is told the epoch it is for:
`scheduler.step(epoch)`.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import Actor, EventKind, Source, Tape, updates
from gradclinic.findings import Finding, Severity
from gradclinic.rules._rule import Rule
from gradclinic.rules.order._schedules import schedules, training_begins, unknown_calls

rule = Rule(
    "GC113",
    "scheduler-cadence",
    Severity.WARNING,
    since="0.1.0",
    sources=(Source.STATIC, Source.RUNTIME),
    topic="schedule cadence",
    needs=(EventKind.SCHEDULE, EventKind.STEP),
    explains=("GC306", "GC612"),
)

BAD = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

x = torch.randn(64, 4)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=4)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
epochs = 3
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs * len(loader))
for epoch in range(epochs):
    for inputs, targets in loader:
        loss = nn.functional.mse_loss(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    scheduler.step()
"""

GOOD = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

x = torch.randn(64, 4)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=4)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
epochs = 3
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs * len(loader))
for epoch in range(epochs):
    for inputs, targets in loader:
        loss = nn.functional.mse_loss(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
"""

GOOD_PER_EPOCH = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

x = torch.randn(64, 4)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=4)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
epochs = 3
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs)
for epoch in range(epochs):
    for inputs, targets in loader:
        loss = nn.functional.mse_loss(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    scheduler.step()
"""

FAR_APART = 2.0
"""Planned and actual ticks must differ by this factor: a unit, not a rounding, is wrong."""
CUT_SHORT = 1.5
"""The same where source is read by short windows: the last one of an epoch, cut short, counts for much."""
SEVERAL = 3
UNITS = {"epoch": "epochs", "batch": "batches", "update": "optimizer updates"}


@rule.check
def ticks_in_another_unit(tape: Tape) -> Iterator[Finding]:
    for schedule, optimizer in schedules(tape):
        counts = _counts(tape, schedule, optimizer)
        ticks = tape.count(EventKind.SCHEDULE, schedule.id)
        planned = _planned_unit(tape, schedule, counts, ticks)
        if planned is None and _swings_back(tape, schedule, ticks, counts["update"]):
            yield _too_short(tape, schedule, ticks)
        if planned is None or not ticks or _told_where_it_is(tape, schedule):
            continue
        if _is_asked_which(tape, schedule):
            continue
        if unknown_calls(tape, schedule, optimizer, after=training_begins(tape)):
            continue
        pace = _unit_of(ticks, counts, but=planned)
        exact = schedule.attrs.get("planned") == counts["update"]
        if pace is None and planned == "update" and exact and _as_by_epochs(tape, ticks, counts):
            pace = "epoch"
        apart = max(counts[planned], ticks) / max(1, min(counts[planned], ticks))
        windows = {planned, pace} == {"batch", "update"} and _read_in_windows(tape, schedule, optimizer)
        if pace is None or apart < (CUT_SHORT if windows else FAR_APART):
            continue
        length = schedule.attrs.get("planned")
        sized = f"{length} {UNITS[planned]}" if length is not None else UNITS[planned]
        evidence: dict[str, object] = {"planned in": sized, "advanced": f"once per {pace}"}
        if schedule.built is not None:
            evidence["built at"] = schedule.built
        if tape.source is Source.RUNTIME:
            evidence["ticks"] = f"{ticks} of {length} planned"
        yield rule.finding(
            f"{schedule.name} was sized in {UNITS[planned]} and is advanced once per {pace}",
            next(tape.of_actor(schedule.id, EventKind.SCHEDULE)),
            evidence=evidence,
            fix=f"call {schedule.name}.step() once per {planned}, or size the schedule in {UNITS[pace]}",
            confidence=0.85,
            subject=schedule.id,
        )


def _told_where_it_is(tape: Tape, schedule: Actor) -> bool:
    """`schedule.step(epoch)`, however often: each tick says how far the training has come."""
    return any(tick.attrs.get("explicit") for tick in tape.of_actor(schedule.id, EventKind.SCHEDULE))


def _is_asked_which(tape: Tape, schedule: Actor) -> bool:
    """`if per_batch: schedule.step()`, where one of several kinds was built: it may go with the kind."""
    ticks = tape.of_actor(schedule.id, EventKind.SCHEDULE)
    return bool(schedule.attrs.get("or_another")) and all(tick.attrs.get("by_choice") for tick in ticks)


def _read_in_windows(tape: Tape, schedule: Actor, optimizer: str) -> bool:
    if any(tick.attrs.get("prepared") for tick in tape.of_actor(schedule.id, EventKind.SCHEDULE)):
        return False
    return tape.source is Source.STATIC and any(update.micro_batches() for update in updates(tape, optimizer))


def _as_by_epochs(tape: Tape, ticks: int, counts: dict[str, int]) -> bool:
    """Without a loader no epoch is seen, only ticks that divide the updates evenly."""
    return (
        tape.source is Source.RUNTIME
        and not counts["epoch"]
        and ticks > 1
        and counts["update"] >= SEVERAL * ticks
        and counts["update"] % ticks == 0
    )


def _swings_back(tape: Tape, schedule: Actor, ticks: int, updates: int) -> bool:
    """A cosine that is made for one descent, and advanced per update for several times its length."""
    length = schedule.attrs.get("planned")
    return (
        tape.source is Source.RUNTIME
        and schedule.type == "CosineAnnealingLR"
        and isinstance(length, int)
        and ticks >= SEVERAL * length
        and _close(ticks, updates)
    )


def _too_short(tape: Tape, schedule: Actor, ticks: int) -> Finding:
    length = schedule.attrs["planned"]
    return rule.finding(
        f"{schedule.name} comes down in {length} ticks and is advanced {ticks} times: it swings up again",
        next(tape.of_actor(schedule.id, EventKind.SCHEDULE)),
        evidence={"ticks": f"{ticks} of {length} planned", "advanced": "once per update"},
        fix=f"call {schedule.name}.step() once per epoch, or give it T_max={ticks}",
        confidence=0.8,
        subject=schedule.id,
    )


def _counts(tape: Tape, schedule: Actor, optimizer: str) -> dict[str, int]:
    """How many of each unit the schedule has lived through; other trainings of the program do not count."""
    updates = [event.index for event in tape.of_actor(optimizer, EventKind.STEP)]
    if tape.totals or not updates:
        return {
            "epoch": tape.count(EventKind.EPOCH_BEGIN),
            "batch": tape.count(EventKind.BATCH),
            "update": tape.count(EventKind.STEP, optimizer),
        }
    built = next((event.index for event in tape.of_actor(schedule.id, EventKind.BUILD)), 0)
    lived = [event.kind for event in tape.events[built : updates[-1] + 1]]
    return {
        "epoch": lived.count(EventKind.EPOCH_BEGIN),
        "batch": lived.count(EventKind.BATCH),
        "update": len(updates),
    }


def _planned_unit(tape: Tape, schedule: Actor, counts: dict[str, int], ticks: int) -> str | None:
    written = schedule.attrs.get("planned_unit")
    if written == "pass":
        # It may well begin anew with every pass over the data, but not where it is advanced once in each.
        written = "batch" if _close(ticks, counts["epoch"]) and not _close(ticks, counts["batch"]) else None
    if isinstance(written, str) and written in counts:
        return written if counts[written] else None
    planned = schedule.attrs.get("planned")
    if tape.source is not Source.RUNTIME or not tape.complete or not isinstance(planned, int):
        return None
    if schedule.attrs.get("stops_early"):
        return None  # Of a run that was left before its end, any count may happen to be the planned one.
    return None if _close(planned, ticks) else _unit_of(planned, counts, but="")


def _unit_of(number: int, counts: dict[str, int], *, but: str) -> str | None:
    """The unit of which the run had this many; a count shared by `but` proves nothing."""
    if but and _close(number, counts[but]):
        return None
    return next(
        (unit for unit, count in counts.items() if count > 1 and unit != but and _close(number, count)), None
    )


def _close(a: int, b: int) -> bool:
    return abs(a - b) <= max(1, 0.02 * max(a, b)) and min(a, b) * FAR_APART > max(a, b)
