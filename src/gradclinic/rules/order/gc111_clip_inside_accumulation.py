"""Each partial gradient of an accumulation window is clipped.

## What it finds
A clip between two backwards of one window: it runs on every micro-batch instead of once before
the step.

## Why it hurts
The limit applies to the sum so far, again and again: early micro-batches are shrunk more often
than late ones, the direction of the update bends towards the last, and the final norm is not the
one that was asked for.

## What to do
Clip once, at the window's boundary, right before `step()`.

## Not the fix
Dividing `max_norm` by the number of micro-batches: the weights of the micro-batches stay unequal.

## Known limits
Only windows whose backwards come from one line, one new batch each, are judged.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from gradclinic.facts import ACCUMULATION, Event, EventKind, Source, Tape, Update, accumulated, updates
from gradclinic.findings import Finding, Fix, Move, Severity, Side
from gradclinic.rules._rule import Rule
from gradclinic.rules.order._wording import order_seen

rule = Rule(
    "GC111",
    "clip-inside-accumulation",
    Severity.WARNING,
    since="0.1.0",
    sources=(Source.STATIC, Source.RUNTIME),
    topic="clip order",
    needs=(ACCUMULATION, EventKind.CLIP),
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
        loss = nn.functional.mse_loss(model(inputs), targets) / accumulate
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if (i + 1) % accumulate == 0 or i + 1 == len(loader):
            optimizer.step()
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
accumulate = 4
for epoch in range(2):
    for i, (inputs, targets) in enumerate(loader):
        loss = nn.functional.mse_loss(model(inputs), targets) / accumulate
        loss.backward()
        if (i + 1) % accumulate == 0 or i + 1 == len(loader):
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
"""


@rule.check
def clipped_within_window(tape: Tape) -> Iterator[Finding]:
    for optimizer in tape.optimizers:
        windows = [(w, clips) for w in updates(tape, optimizer) if (clips := _clips_between(tape, w))]
        if len(windows) < 2:
            continue
        window, clips = windows[0]
        yield rule.finding(
            "gradients are clipped after every micro-batch instead of once per window",
            clips[0],
            evidence={
                "order seen": order_seen(window.events, EventKind.BACKWARD, EventKind.CLIP, EventKind.STEP)
            },
            fix=Fix(
                "move the clip into the window's boundary, right before step()",
                changes=(Move(clips[0].where, Side.BEFORE, window.step.where),),
            ),
            confidence=0.95,
            subject=optimizer,
        )


def _clips_between(tape: Tape, window: Update) -> list[Event]:
    """Clips that lie between two backwards of the window, if there is one between each two."""
    backwards = accumulated(tape, window)
    between = [
        [c for c in window.of_kind(EventKind.CLIP) if earlier.index < c.index < later.index]
        for earlier, later in pairwise(backwards)
    ]
    return between[0] if between and all(between) else []
