"""The last partial window of an epoch is never stepped, or leaks into the next epoch.

## What it finds
An accumulating loop whose epoch ends between two boundaries: the gradients of the left-over
micro-batches are cleared unused, or stay and join the first window of the next epoch.

## Why it hurts
Dropped micro-batches are data the model never learns from, always the same ones without
shuffling. Leaked ones make one window larger than its divisor allows for.

## What to do
Close the window at the end of the epoch too:

    if (i + 1) % accumulate == 0 or i + 1 == len(loader):
        optimizer.step()
        optimizer.zero_grad()

and divide the last window's losses by the number of micro-batches it holds. Or drop the tail on
purpose, by a loader whose length is a multiple of the window.

## Not the fix
Clearing the gradients at the start of each epoch: that turns the leak into a loss.

## Known limits
From source the length of the data is rarely known: then this is an advice, not a warning. A
window counted over all epochs, which crosses their border whole, is right and not reported.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import ACCUMULATION, Event, EventKind, Source, Tape, Update, tail, updates
from gradclinic.findings import Finding, Severity
from gradclinic.rules._rule import Rule
from gradclinic.rules.order._wording import order_seen

rule = Rule(
    "GC108",
    "accumulation-tail",
    Severity.WARNING,
    since="0.1.0",
    sources=(Source.STATIC, Source.RUNTIME),
    topic="accumulation",
    needs=(ACCUMULATION, EventKind.EPOCH_END),
)

BAD = """
import torch
from torch import nn

data = torch.randn(10, 8, 4)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
loader = torch.utils.data.DataLoader(data, batch_size=None)
accumulate = 4
for epoch in range(3):
    optimizer.zero_grad()
    for i, x in enumerate(loader):
        loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True)) / accumulate
        loss.backward()
        if (i + 1) % accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()
"""

GOOD = """
import torch
from torch import nn

data = torch.randn(10, 8, 4)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
loader = torch.utils.data.DataLoader(data, batch_size=None)
accumulate = 4
for epoch in range(3):
    optimizer.zero_grad()
    for i, x in enumerate(loader):
        loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True)) / accumulate
        loss.backward()
        if (i + 1) % accumulate == 0 or i + 1 == len(loader):
            optimizer.step()
            optimizer.zero_grad()
"""

GOOD_WINDOW_ACROSS_EPOCHS = """
import torch
from torch import nn

data = torch.randn(10, 8, 4)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
loader = torch.utils.data.DataLoader(data, batch_size=None)
accumulate = 4
seen = 0
for epoch in range(4):
    for x in loader:
        loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True)) / accumulate
        loss.backward()
        seen += 1
        if seen % accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()
"""


@rule.check
def window_cut_by_the_epoch(tape: Tape) -> Iterator[Finding]:
    for optimizer in tape.optimizers:
        windows = [w for w in updates(tape, optimizer) if not _hides(w)]
        whole = [len(w.micro_batches()) for w in windows if w.micro_batches() and not _crosses_epoch(w)]
        if len(whole) < 2 or min(whole) != max(whole):
            continue
        length = whole[0]
        if any(_crosses_epoch(w) and len(w.micro_batches()) == length for w in windows):
            continue
        cut = [(w, _left_over(w)) for w in windows if _crosses_epoch(w)]
        dropped = [left for w, left in cut if left and _cleared_after(w.events, left[-1])]
        leaked = [left for w, left in cut if _goes_on(w, left) and left not in dropped]
        last = _left_over_events(tail(tape, optimizer)) if tape.complete else ()
        lost = leaked or dropped or ([last] if last and len(last) < length else [])
        if not lost:
            continue
        known = all(e.attrs.get("known", True) for e in tape.of_kind(EventKind.EPOCH_BEGIN))
        certain = known and bool(leaked or dropped)
        left = lost[0]
        yield rule.finding(
            "the window that the end of an epoch cuts short "
            + ("joins the first window of the next epoch" if leaked else "is never stepped")
            + (f": {len(left)} of {length} micro-batches" if known else " when its length is no multiple"),
            # Where it is stepped is what has to be mended.
            next(w.step for w in windows if len(w.micro_batches()) == length),
            also=(left[-1],),
            evidence={
                "order seen": order_seen(
                    [*left, *windows[-1].events[-3:]],
                    EventKind.BACKWARD,
                    EventKind.EPOCH_END,
                    EventKind.ZERO_GRAD,
                ),
                **({"epochs affected": len(lost)} if tape.source is Source.RUNTIME else {}),
            },
            fix="step at the end of the epoch too, dividing by the micro-batches the last window holds",
            confidence=0.9 if certain else 0.5,
            severity=None if certain else Severity.INFO,
            subject=optimizer,
        )


def _hides(window: Update) -> bool:
    """Something that could not be followed may have stepped in between; what it did before is no matter."""
    first = next((event.index for event in window.backwards), window.step.index)
    return any(event.kind is EventKind.OPAQUE and event.index > first for event in window.events)


def _crosses_epoch(window: Update) -> bool:
    return bool(_left_over(window))


def _left_over(window: Update) -> tuple[Event, ...]:
    return _left_over_events(window.events)


def _left_over_events(events: tuple[Event, ...]) -> tuple[Event, ...]:
    """Backwards that were pending when the data of an epoch ended."""
    ends = [event.index for event in events if event.kind is EventKind.EPOCH_END]
    if not ends:
        return ()
    return tuple(e for e in events if e.kind is EventKind.BACKWARD and e.index < ends[0])


def _goes_on(window: Update, left: tuple[Event, ...]) -> bool:
    """Batches of the next epoch were added to what was left over; what is stepped before them is no leak."""
    return len(window.micro_batches()) > len(left)


def _cleared_after(events: tuple[Event, ...], last: Event) -> bool:
    """The next thing that happens to the pending gradients is a clear."""
    for event in events:
        if event.index > last.index and event.kind in (EventKind.BACKWARD, EventKind.ZERO_GRAD):
            return event.kind is EventKind.ZERO_GRAD
    return False
