"""An optimizer steps again and again and nothing clears its gradients in between.

## What it finds
A loop in which `backward()` and `step()` repeat and no `zero_grad()` of the optimizer or the
model, and no assignment of `None` to `.grad`, comes between one step and the next backward; or one
that comes once per epoch only, before the batches, each of which is stepped on. The same for updates
written out: `w -= lr * w.grad`.

## Why it hurts
`backward()` adds to `.grad`; it does not replace it. Every update then uses the sum of all
gradients since the start of the run: old batches keep pushing, the effective learning rate grows
with the step count, and the loss oscillates or diverges.

## What to do
Clear the gradients once per update, before the backward or right after the step:

    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

## Not the fix
Lowering the learning rate or clipping the norm: both only delay the moment when the sum of stale
gradients dominates.

## Known limits
Gradients cleared in code that cannot be followed keep this rule silent.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import Actor, EventKind, Source, Tape, Update, updates
from gradclinic.facts.descents import DescentByHand
from gradclinic.findings import Finding, Fix, Insert, Severity, Side, Word
from gradclinic.rules._rule import Rule
from gradclinic.rules.order._wording import order_seen

rule = Rule(
    "GC101",
    "missing-zero-grad",
    Severity.ERROR,
    since="0.1.0",
    sources=(Source.STATIC, Source.RUNTIME),
    topic="gradients cleared",
    needs=(EventKind.BACKWARD, EventKind.STEP),
    explains=("GC601", "GC603", "GC307", "GC612", "GC506", "GC508"),
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
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""

BAD_ONCE_PER_EPOCH = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

x = torch.randn(64, 4)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=8)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for epoch in range(3):
    optimizer.zero_grad()
    for inputs, targets in loader:
        loss = nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
"""

GOOD_CLEARED_BY_HAND = """
import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(20):
    x = torch.randn(8, 4)
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
    for parameter in model.parameters():
        parameter.grad = None
"""

GOOD_CLEARED_THROUGH_THE_MODEL = """
import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(20):
    model.zero_grad()
    x = torch.randn(8, 4)
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
"""

ENOUGH_UPDATES = {Source.STATIC: 2, Source.RUNTIME: 3}
"""A loop that is read is gone through twice or more; one that runs may have been meant to end there."""


@rule.check
def never_cleared(tape: Tape) -> Iterator[Finding]:
    if _goes_by_another_name(tape):
        return
    for optimizer in tape.optimizers:
        done = updates(tape, optimizer)
        enough = ENOUGH_UPDATES[tape.source]
        if len(done) < enough or done[0].opaque:
            continue
        # A call that is made between some updates clears for none of the others.
        done = tuple(update for update in done if not update.opaque)
        cleared = any(update.of_kind(EventKind.ZERO_GRAD) for update in done[1:])
        if cleared:
            done = tuple(update for update in done if not _begins_an_epoch(update))
            if any(update.of_kind(EventKind.ZERO_GRAD) for update in done):
                continue
        if _replaced(done) or _tended(done) or _cleared_by_others(tape, optimizer):
            continue
        trained = [update for update in done if update.backwards]
        same_step = {update.step.where for update in trained}
        if len(trained) < enough or len(trained) <= len(same_step):
            continue
        last = trained[-1]
        yield rule.finding(
            f"the gradients of {tape.name(optimizer)} are cleared once per epoch only: "
            "backward() adds to those of all batches before"
            if cleared
            else f"nothing clears the gradients of {tape.name(optimizer)}: "
            "backward() adds to those of all earlier steps",
            last.backwards[-1],
            also=(last.step,),
            evidence={
                "order seen": order_seen(
                    [event for update in done[:3] for event in update.events],
                    EventKind.BACKWARD,
                    EventKind.STEP,
                ),
                "updates without a clear": len(trained),
            },
            fix=_clear(tape, optimizer, trained),
            confidence=0.95,
            subject=optimizer,
        )


@rule.check
def never_cleared_by_hand(descent: DescentByHand) -> Iterator[Finding]:
    names = ", ".join(descent.names)
    owner = descent.names[0].partition(".parameters(")[0]
    clear = f"{owner}.zero_grad()" if owner != descent.names[0] else f"{owner}.grad = None"
    yield rule.finding(
        f"nothing in the loop clears the gradients of {names}: backward() adds to those of all earlier steps",
        descent.backward,
        evidence={"order seen": f"backward:{descent.backward.line} update:{descent.where.line}"},
        fix=f"clear them after each update: {clear if len(descent.names) == 1 else 'w.grad = None for each'}",
        confidence=0.93,
    )


def _goes_by_another_name(tape: Tape) -> bool:
    """`for o in each(optimizers): o.zero_grad()`: what is cleared and never steps is what steps elsewhere."""
    if tape.source is not Source.STATIC:
        return False
    steps = {event.actor for event in tape.of_kind(EventKind.STEP)}
    cleared = {event.actor for event in tape.of_kind(EventKind.ZERO_GRAD)} - steps
    return any(id in cleared and _is_of_several(tape.actors[id]) for id in tape.optimizers)


def _is_of_several(optimizer: Actor) -> bool:
    """Whether it comes out of a collection, as `each()[]` and `pairs.batch.optimizer` do.

    One with a name of its own, as `self.opt_d`, is itself: to clear it for the one that steps is this fault.
    """
    path = optimizer.name.removeprefix("self.")
    return optimizer.built is None and ("[" in path or path.count(".") > 1)


def _begins_an_epoch(update: Update) -> bool:
    return bool(update.of_kind(EventKind.EPOCH_BEGIN))


def _replaced(done: tuple[Update, ...]) -> bool:
    """`p.grad = torch.zeros_like(p)` and the like: what is assigned may well be zeros."""
    return any(e.attrs.get("replaced") for update in done for e in update.of_kind(EventKind.GRAD_WRITE))


def _cleared_by_others(tape: Tape, optimizer: str) -> bool:
    """`both = Adam([*g.parameters(), *d.parameters()])`: those that train the parts clear what it holds."""
    held = tape.actors[optimizer].of
    cleared = {event.actor for event in tape.of_kind(EventKind.ZERO_GRAD)} - {optimizer}
    others = [actor for id, actor in tape.actors.items() if id in cleared]
    return bool(held) and all(
        any(other.acts_on_all_of(frozenset({part})) for other in others) for part in held
    )


def _tended(done: tuple[Update, ...]) -> bool:
    """`p.grad.mul_(0.9)` between a step and the next backward: what is left over is meant to live on."""
    return any(
        write.index < update.backwards[0].index
        for update in done[1:]
        if update.backwards
        for write in update.of_kind(EventKind.GRAD_WRITE)
    )


def _clear(tape: Tape, optimizer: str, trained: list[Update]) -> Fix:
    """Before the backward; after the step where several backwards share one."""
    step = trained[-1].step
    backwards = {event.where for update in trained for event in update.backwards}
    alone = len(backwards) == 1 and all(len(update.backwards) == 1 for update in trained)
    word = Word(step.where, "step", 0 if step.attrs.get("scaler") else None)
    side, beside = (Side.BEFORE, backwards.pop()) if alone else (Side.AFTER, step.where)
    return Fix(
        f"call {tape.name(optimizer)}.zero_grad() before each backward()",
        changes=(Insert("{}.zero_grad()", (word,), side, beside),),
        safe=alone and len(tape.optimizers) == 1,
    )
