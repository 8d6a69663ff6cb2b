"""Gradients are unscaled twice before one update.

## What it finds
`scaler.unscale_(optimizer)` a second time with no `scaler.update()` in between, most often on
every micro-batch of an accumulation window; or after an iteration in which the step was left out for
the size of its gradients, and `scaler.update()` with it.

## Why it hurts
torch raises a RuntimeError; where the second call is avoided by a fresh scaler or a second
optimizer object, the gradients are divided by the scale twice and vanish.

## What to do
Unscale once per update, at the window's boundary, right before the clip:

    if (i + 1) % accumulate == 0:
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()

Where a step is left out on purpose, call `scaler.update()` all the same.

## Not the fix
Catching the RuntimeError, or calling `scaler.update()` on every micro-batch: the scale then
changes within the window.

## Known limits
Unscaling done inside code that cannot be followed is not counted.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import Event, EventKind, Source, Tape
from gradclinic.findings import Finding, Fix, Move, Remove, Severity, Side
from gradclinic.rules._rule import Rule
from gradclinic.rules.order._wording import order_seen

rule = Rule(
    "GC502",
    "double-unscale",
    Severity.ERROR,
    since="0.1.0",
    sources=(Source.STATIC, Source.RUNTIME),
    topic="loss scaling",
    needs=(EventKind.UNSCALE,),
)

BAD = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

x = torch.randn(64, 4)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=4)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu")
accumulate = 4
for epoch in range(2):
    for i, (inputs, targets) in enumerate(loader):
        loss = nn.functional.mse_loss(model(inputs), targets) / accumulate
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        if (i + 1) % accumulate == 0 or i + 1 == len(loader):
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
"""

GOOD = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

x = torch.randn(64, 4)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=4)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu")
accumulate = 4
for epoch in range(2):
    for i, (inputs, targets) in enumerate(loader):
        loss = nn.functional.mse_loss(model(inputs), targets) / accumulate
        scaler.scale(loss).backward()
        if (i + 1) % accumulate == 0 or i + 1 == len(loader):
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
"""


@rule.check
def unscaled_again(tape: Tape) -> Iterator[Finding]:
    for optimizer in tape.optimizers:
        first: Event | None = None
        # One that never steps by the name it is unscaled by may step by another.
        steps = any(event.concerns(optimizer) for event in tape.of_kind(EventKind.STEP))
        for event in tape.events:
            surely = event.kind is EventKind.UNSCALE and event.actor is not None
            if surely and event.optimizers and optimizer in event.optimizers:
                if first is None or first.actor != event.actor:
                    first = event
                    continue
                yield rule.finding(
                    f"{tape.name(event.actor)}.unscale_({tape.name(optimizer)}) runs twice before one update",
                    event,
                    evidence={
                        "order seen": order_seen(
                            tape.events[first.index : event.index + 1],
                            EventKind.BACKWARD,
                            EventKind.UNSCALE,
                            EventKind.STEP,
                            EventKind.SCALER_UPDATE,
                        )
                    },
                    fix=_once(tape, first, event),
                    also=_skipped(tape, first, event),
                    confidence=0.96,
                    subject=optimizer,
                )
                break
            closes = event.kind in (EventKind.SCALER_UPDATE, EventKind.OPAQUE, EventKind.STEP)
            another = event.kind is EventKind.STEP and not steps
            if closes and (another or event.concerns(optimizer) or event.kind is EventKind.SCALER_UPDATE):
                first = None


def _skipped(tape: Tape, first: Event, second: Event) -> tuple[Event, ...]:
    """What left the update out: paths on which it never happens have no say."""
    skips = [e for e in tape.events[first.index : second.index] if e.kind is EventKind.SKIP]
    return tuple(skips[:1])


def _once(tape: Tape, first: Event, second: Event) -> Fix:
    if _skipped(tape, first, second):
        return Fix("call update() on the scaler also where the step is left out")
    text = "unscale once per update, right before the clip and the step"
    if first.where != second.where:
        between = tape.events[first.index : second.index]
        alone = len(tape.optimizers) == 1 and all(e.kind is not EventKind.BACKWARD for e in between)
        return Fix(text, changes=(Remove(second.where, first.where),), safe=alone)
    step = next((e for e in tape.of_kind(EventKind.STEP) if e.index > second.index), None)
    return Fix(text, changes=(Move(second.where, Side.BEFORE, step.where),) if step else ())
