"""Gradients are cleared after backward and before the step that should use them.

## What it finds
`zero_grad()` between `backward()` and `step()`, with no other backward in between.

## Why it hurts
The step finds no gradient. With `set_to_none=True`, the default, it does nothing at all; with
zeros it applies only momentum and weight decay. The loss stays where it was, without an error.

## What to do
Clear before the backward, or after the step:

    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

## Not the fix
Raising the learning rate: any rate times nothing is nothing.

## Known limits
Gradients put back by hand after the clear, as gradient surgery does, keep this rule silent.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import Event, EventKind, Source, Tape, Update, surely, updates
from gradclinic.findings import Finding, Fix, Move, Severity, Side
from gradclinic.rules._rule import Rule
from gradclinic.rules.order._wording import order_seen

rule = Rule(
    "GC102",
    "zero-grad-before-step",
    Severity.ERROR,
    since="0.1.0",
    sources=(Source.STATIC, Source.RUNTIME),
    topic="gradients cleared",
    needs=(EventKind.BACKWARD, EventKind.STEP, EventKind.ZERO_GRAD),
    explains=("GC612", "GC206", "GC306"),
)

BAD = """
import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(20):
    x = torch.randn(8, 4)
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    optimizer.zero_grad()
    optimizer.step()
"""

GOOD = """
import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(20):
    x = torch.randn(8, 4)
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""

GOOD_ADVERSARIAL_TRAINING = """
import torch
from torch import nn

model = nn.Linear(4, 2)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(20):
    x = torch.randn(8, 4, requires_grad=True)
    y = torch.randint(0, 2, (8,))
    criterion(model(x), y).backward()
    attacked = (x + 0.1 * x.grad.sign()).detach()
    optimizer.zero_grad()
    loss = criterion(model(attacked), y)
    loss.backward()
    optimizer.step()
"""

GOOD_GRADIENTS_PUT_BACK = """
import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(20):
    x = torch.randn(8, 4)
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    kept = [p.grad.clone() for p in model.parameters()]
    optimizer.zero_grad()
    for p, g in zip(model.parameters(), kept):
        p.grad = 0.5 * g
    optimizer.step()
"""


@rule.check
def cleared_too_early(tape: Tape) -> Iterator[Finding]:
    for optimizer in tape.optimizers:
        done = updates(tape, optimizer)
        wiped = [update for update in done if _gradient_wiped(update) and _cleared_for_sure(tape, update)]
        if not wiped or len(wiped) < len([u for u in done if u.backwards]) / 2:
            continue
        first = wiped[0]
        clear = _clears(first)[-1]
        yield rule.finding(
            f"gradients are cleared before {tape.name(optimizer)}.step() can use them",
            clear,
            evidence={
                "order seen": order_seen(
                    first.events, EventKind.BACKWARD, EventKind.ZERO_GRAD, EventKind.STEP
                ),
                "steps taken on nothing": f"{len(wiped)} of {len(done)}",
            },
            fix=Fix(
                "move zero_grad() above backward(), or below step()",
                changes=(Move(clear.where, Side.AFTER, first.step.where),),
                safe=len(tape.optimizers) == 1,
            ),
            confidence=0.97,
            subject=optimizer,
        )


def _cleared_for_sure(tape: Tape, update: Update) -> bool:
    """And not in a branch that leaves out the rest: `if norm > limit: zero_grad(); step(); continue`."""
    clear = _clears(update)[-1]
    return surely(clear, tape, update.optimizer) and not clear.attrs.get("skips")


def _gradient_wiped(update: Update) -> bool:
    """Backward, then a clear, then the step, with nothing computed or written after the clear.

    A forward after the clear means the step came before its own backward; GC105 tells that.
    """
    clears = _clears(update)
    backwards = update.backwards
    if not clears or not backwards or clears[-1].index < backwards[-1].index:
        return False
    gap = (EventKind.GRAD_WRITE, EventKind.OPAQUE, EventKind.BATCH, EventKind.FORWARD, EventKind.LOSS)
    return not any(event.index > clears[-1].index for event in update.of_kind(*gap))


def _clears(update: Update) -> tuple[Event, ...]:
    """Not those of some layers only, which are to stay: `for p in head.parameters(): p.grad = None`."""
    return tuple(event for event in update.of_kind(EventKind.ZERO_GRAD) if not event.attrs.get("partly"))
