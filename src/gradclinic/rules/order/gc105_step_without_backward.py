"""A step is taken with no backward since the last one.

## What it finds
`optimizer.step()` with no `backward()` since the step before it, or placed ahead of the backward
of its own iteration, so that it finds cleared gradients.

## Why it hurts
The step applies stale gradients once more, or none: nothing is learned from the batch whose loss
was just computed.

## What to do
Order the iteration: `zero_grad()`, forward, loss, `backward()`, `step()`.

## Not the fix
Removing `zero_grad()` so that the step finds something: it then finds old sums.

## Known limits
A single step before training begins, made to quiet a schedule's warning, is accepted, and so is a loop
that only turns a schedule. Gradients written by hand count as a backward. In
source, a backward that seems to reach no optimizer is taken to reach this one. Where a file has no backward
at all, a call out of sight is taken to hide it if it is made for its effect and given more than numbers, or
given something that is called a loss, as in `weights = balance(losses)`.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import EventKind, Source, Tape, Update, updates
from gradclinic.findings import Finding, Fix, Move, Severity, Side
from gradclinic.rules._rule import Rule
from gradclinic.rules.order._wording import order_seen

rule = Rule(
    "GC105",
    "step-without-backward",
    Severity.ERROR,
    since="0.1.0",
    sources=(Source.STATIC, Source.RUNTIME),
    topic="step after backward",
    needs=(EventKind.STEP,),
    explains=("GC612", "GC206", "GC306"),
    subsumes=("GC101", "GC102"),
)

BAD = """
import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(20):
    x = torch.randn(8, 4)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    optimizer.step()
    loss.backward()
"""

BAD_NO_BACKWARD = """
import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(20):
    x = torch.randn(8, 4)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    optimizer.step()
"""

GOOD = """
import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(20):
    x = torch.randn(8, 4)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
"""

GOOD_CLOSURE = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=4)
x = torch.randn(32, 4)
y = x.sum(1, keepdim=True)


def closure():
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    return loss


for step in range(5):
    optimizer.step(closure)
"""

GOOD_FIRST_STEP_FOR_THE_SCHEDULE = """
import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=10)
optimizer.zero_grad()
optimizer.step()
for step in range(20):
    x = torch.randn(8, 4)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
    schedule.step()
"""

GOOD_GRADIENTS_BY_HAND = """
import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(20):
    x = torch.randn(8, 4)
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    grads = torch.autograd.grad(loss, list(model.parameters()))
    for p, g in zip(model.parameters(), grads):
        p.grad = g
    optimizer.step()
"""

GOOD_SCHEDULE_ON_ITS_OWN = """
import torch
from torch import nn

optimizer = torch.optim.SGD(nn.Linear(4, 1).parameters(), lr=0.01)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=10)
rates = []
for epoch in range(20):
    rates.append(schedule.get_last_lr()[0])
    optimizer.step()
    schedule.step()
"""


@rule.check
def stepped_on_nothing(tape: Tape) -> Iterator[Finding]:
    if not tape.kinds & _COMPUTED:
        return  # a schedule that is printed or plotted, whatever else is called around it
    for optimizer in tape.optimizers:
        done = [update for update in updates(tape, optimizer) if not update.opaque]
        empty = [
            update
            for update in done
            if not _only_steps(tape, update)
            and (_before_its_backward(update) or (update.index and not update.gradients))
            and not _backward_of_unknown_reach(tape, update)
        ]
        repeated = len(empty) >= 2 and len({u.step.where for u in empty}) < len(empty)
        if not repeated or len(empty) < len(done) / 2:
            continue
        shown = empty[1]
        name = tape.name(optimizer)
        stale = any(update.gradients for update in done)
        yield rule.finding(
            f"{name}.step() comes before the backward() of its iteration and finds cleared gradients"
            if stale
            else f"{name}.step() is called and no backward() ever fills its gradients",
            shown.step,
            evidence={
                "order seen": order_seen(
                    shown.events, EventKind.BACKWARD, EventKind.ZERO_GRAD, EventKind.LOSS, EventKind.STEP
                ),
                "steps taken on nothing": f"{len(empty)} of {len(done)}",
            },
            fix=_step_later(tape, optimizer, shown) if stale else "call loss.backward() before step()",
            confidence=0.93,
            subject=optimizer,
        )


_COMPUTED = {EventKind.FORWARD, EventKind.LOSS, EventKind.BACKWARD}


def _only_steps(tape: Tape, update: Update) -> bool:
    """Nothing is computed that could have gradients: rates are plotted, or an optimizer is tried out.

    What a run computes without a module is not on its tape.
    """
    computes = update.of_kind(EventKind.FORWARD, EventKind.LOSS, EventKind.BACKWARD)
    if tape.source is Source.RUNTIME or update.of_kind(EventKind.ZERO_GRAD):
        computes += update.of_kind(EventKind.BATCH)  # and not a loop that times steps
    return not computes and (tape.source is Source.STATIC or bool(update.of_kind(EventKind.SCHEDULE)))


def _backward_of_unknown_reach(tape: Tape, update: Update) -> bool:
    """Source ascribes a backward to no optimizer at all: the model came in by a way not followed."""
    began, ended = update.events[0].index, update.step.index
    return tape.source is Source.STATIC and any(
        began < event.index < ended and event.optimizers == frozenset()
        for event in tape.of_kind(EventKind.BACKWARD)
    )


def _before_its_backward(update: Update) -> bool:
    """Backward, clear, then a new forward or batch, and the step without a backward of its own."""
    clears = update.of_kind(EventKind.ZERO_GRAD)
    gradients = update.gradients
    if not clears or (gradients and gradients[-1].index > clears[-1].index):
        return False
    began = update.of_kind(EventKind.BATCH, EventKind.FORWARD, EventKind.LOSS)
    return bool(began) and began[-1].index > (gradients[-1].index if gradients else -1)


def _step_later(tape: Tape, optimizer: str, update: Update) -> Fix:
    following = (e for e in tape.timeline(optimizer) if e.index > update.step.index)
    backward = next((e for e in following if e.kind is EventKind.BACKWARD), None)
    text = "move step() below backward()"
    if backward is None:
        return Fix(text)
    return Fix(
        text,
        changes=(Move(update.step.where, Side.AFTER, backward.where),),
        safe=len(tape.optimizers) == 1 and not update.step.attrs.get("scaler"),
    )
