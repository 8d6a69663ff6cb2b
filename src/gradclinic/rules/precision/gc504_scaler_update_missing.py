"""The loss scale is never adapted.

## What it finds
Steps through a `GradScaler` with no `scaler.update()`, or a scaler built anew for every step.

## Why it hurts
The scale stays at its first value. If that overflows, every step is skipped and nothing is ever
learned; if it is too small, gradients vanish in float16. Without `update()` the scaler also keeps
its per-step state, so that a later `unscale_` raises.

## What to do
Build one scaler before the loop and end each update with:

    scaler.step(optimizer)
    scaler.update()

## Not the fix
Choosing another `init_scale`: the right scale changes as the gradients do.

## Known limits
A scaler handed to code that cannot be followed is not judged.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from gradclinic.facts import Actor, ActorKind, Event, EventKind, Source, Tape, cadence
from gradclinic.findings import Finding, Fix, Insert, Severity, Side, Word
from gradclinic.rules._rule import Rule
from gradclinic.rules.order._wording import order_seen

rule = Rule(
    "GC504",
    "scaler-update-missing",
    Severity.ERROR,
    since="0.1.0",
    sources=(Source.STATIC, Source.RUNTIME),
    topic="loss scaling",
    needs=(ActorKind.SCALER, EventKind.STEP),
    explains=("GC505", "GC612"),
)

BAD = """
import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu")
for step in range(20):
    x = torch.randn(8, 4)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    scaler.scale(loss).backward()
    scaler.step(optimizer)
"""

BAD_CLIPPED = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
for step in range(20):
    x = torch.randn(32, 8)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
"""

BAD_REBUILT = """
import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(20):
    scaler = torch.amp.GradScaler("cpu")
    x = torch.randn(8, 4)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
"""

GOOD = """
import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu")
for step in range(20):
    x = torch.randn(8, 4)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
"""

ENOUGH_STEPS = 3


@rule.check
def scale_never_adapted(tape: Tape) -> Iterator[Finding]:
    rebuilt = list(_rebuilt_each_step(tape))
    yield from rebuilt
    scalers = [a for a in tape.actors.values() if a.kind is ActorKind.SCALER]
    for scaler in [] if rebuilt else scalers:
        steps = [e for e in tape.of_kind(EventKind.STEP) if e.attrs.get("scaler") == scaler.id]
        unknown = any(e.actor == scaler.id or e.optimizers is None for e in tape.of_kind(EventKind.OPAQUE))
        repeated = len({e.where for e in steps}) < len(steps)
        refused = repeated and any(e.attrs.get("refused") for e in steps)
        refused |= any(e.attrs.get("refused") for e in tape.of_actor(scaler.id, EventKind.UNSCALE))
        if unknown or tape.count(EventKind.SCALER_UPDATE, scaler.id):
            continue
        if not steps or not (refused or (repeated and len(steps) >= ENOUGH_STEPS)):
            continue
        yield rule.finding(
            f"{scaler.name}.update() is never called, so the loss scale stays at its first value",
            steps[0],
            evidence={
                "order seen": order_seen(
                    tape.events, EventKind.BACKWARD, EventKind.STEP, EventKind.SCALER_UPDATE
                )
            },
            fix=_update(tape, scaler, steps),
            confidence=0.95,
            subject=next(iter(steps[0].optimizers or ()), scaler.id),
        )


def _rebuilt_each_step(tape: Tape) -> Iterator[Finding]:
    steps = [e for e in tape.of_kind(EventKind.STEP) if e.attrs.get("scaler")]
    # One for each of several trainings: its loop begins after it is built.
    begins = [e.index for e in tape.of_kind(EventKind.EPOCH_BEGIN)]
    for _, builds in cadence(tuple(e for e in tape.of_kind(EventKind.BUILD) if _is_scaler(tape, e))):
        pairs = list(pairwise(builds))
        each_step = all(_one_each([s for s in steps if a.index < s.index < b.index]) for a, b in pairs)
        if len(pairs) + 1 < ENOUGH_STEPS or not each_step:
            continue
        first = next(step for step in steps if step.index > builds[0].index)
        if any(builds[0].index < begin < first.index for begin in begins):
            continue
        yield rule.finding(
            f"{tape.name(builds[0].actor)} is built anew for every step and forgets what it learned",
            builds[0],
            also=(first,),
            evidence={
                "built": f"{len(builds)} times" if tape.source is Source.RUNTIME else "in every iteration"
            },
            fix="build the scaler once, before the loop",
            confidence=0.95,
            subject=builds[0].actor or "",
        )


def _one_each(steps: list[Event]) -> bool:
    """One step, or one of each of the optimizers that share the scaler."""
    return len(steps) > 0 and len({step.actor for step in steps}) == len(steps)


def _is_scaler(tape: Tape, event: Event) -> bool:
    actor = tape.actors.get(event.actor or "")
    return actor is not None and actor.kind is ActorKind.SCALER


def _update(tape: Tape, scaler: Actor, steps: list[Event]) -> Fix:
    step = steps[0].where
    text = f"call {scaler.name}.update() after {scaler.name}.step({tape.name(steps[0].actor)})"
    if any(event.where != step for event in steps):
        return Fix(text)
    return Fix(
        text,
        changes=(Insert("{}.update()", (Word(step, "step"),), Side.AFTER, step),),
        safe=len(tape.optimizers) == 1,
    )
