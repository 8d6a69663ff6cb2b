"""Gradients are cleared on every micro-batch of an accumulating loop.

## What it finds
A loop that steps every few micro-batches but clears the gradients before each of them.

## Why it hurts
Only the last micro-batch of each window reaches the step; the work on the others is thrown away.
The run behaves like one with a batch K times smaller and, if the loss is divided by K, with a
learning rate K times lower.

## What to do
Clear only after the step, inside the window's boundary:

    (loss / k).backward()
    if (i + 1) % k == 0:
        optimizer.step()
        optimizer.zero_grad()

## Not the fix
Raising the learning rate to make up for the lost micro-batches: the gradient keeps the noise of
one of them.

## Known limits
Only windows whose backwards come from one line, one new batch each, are judged.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from gradclinic.facts import (
    ACCUMULATION,
    Event,
    EventKind,
    Source,
    Tape,
    Update,
    cadence,
    serves_another,
    updates,
)
from gradclinic.findings import Finding, Fix, Move, Severity, Side
from gradclinic.rules._rule import Rule
from gradclinic.rules.order._wording import order_seen

rule = Rule(
    "GC103",
    "zero-grad-inside-accumulation",
    Severity.ERROR,
    since="0.1.0",
    sources=(Source.STATIC, Source.RUNTIME),
    topic="accumulation",
    needs=(ACCUMULATION,),
    explains=("GC612", "GC306"),
    subsumes=("GC106", "GC108"),
)

BAD = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

x = torch.randn(64, 4)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=4)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
accumulate = 4
for epoch in range(2):
    for i, (inputs, targets) in enumerate(loader):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs), targets) / accumulate
        loss.backward()
        if (i + 1) % accumulate == 0:
            optimizer.step()
"""

GOOD = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

x = torch.randn(64, 4)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=4)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
accumulate = 4
for epoch in range(2):
    for i, (inputs, targets) in enumerate(loader):
        loss = nn.functional.mse_loss(model(inputs), targets) / accumulate
        loss.backward()
        if (i + 1) % accumulate == 0 or i + 1 == len(loader):
            optimizer.step()
            optimizer.zero_grad()
"""


@rule.check
def cleared_within_window(tape: Tape) -> Iterator[Finding]:
    for optimizer in tape.optimizers:
        windows = [update for update in updates(tape, optimizer) if not update.opaque]
        cleared = [window for window in windows if _cleared_between(tape, window)]
        if len(cleared) < 2:
            continue
        first = cleared[1]
        clear = first.of_kind(EventKind.ZERO_GRAD)[-1]
        lost = len(first.backwards) // len({event.where for event in first.backwards}) - 1
        yield rule.finding(
            f"gradients are cleared on every micro-batch: {tape.name(optimizer)}.step() sees only the last",
            clear,
            evidence={
                "order seen": order_seen(
                    first.events, EventKind.ZERO_GRAD, EventKind.BACKWARD, EventKind.STEP
                ),
                "micro-batches lost per update": lost
                if tape.source is Source.RUNTIME
                else "all but the last",
            },
            fix=Fix(
                "move zero_grad() into the window's boundary, after step()",
                changes=(Move(clear.where, Side.AFTER, first.step.where),),
            ),
            confidence=0.95,
            subject=optimizer,
        )


def _cleared_between(tape: Tape, window: Update) -> bool:
    """Every backward is called again on other data, with a clear between: no call site is left to add up.

    One that comes once, on the boundary, is what the step is for; the others may be another optimizer's. So
    is one that another optimizer steps on first.
    """
    if any(event.attrs.get("in_step") for event in window.backwards):
        return False
    clears = [event.index for event in window.of_kind(EventKind.ZERO_GRAD)]
    data = [event.index for event in window.events if event.brings_data]
    sites = [calls for _, calls in cadence(window.backwards)]
    return bool(sites) and all(
        len(calls) > 1
        and all(
            _any_between(clears, earlier, later)
            and _any_between(data, earlier, later)
            and not serves_another(tape, window, earlier)
            for earlier, later in pairwise(calls)
        )
        for calls in sites
    )


def _any_between(indices: list[int], earlier: Event, later: Event) -> bool:
    return any(earlier.index < index < later.index for index in indices)
