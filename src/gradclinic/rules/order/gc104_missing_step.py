"""Backward runs, an optimizer over those parameters exists, and it never steps.

## What it finds
A loop that computes gradients for an optimizer's parameters while that optimizer's `step()` is
never called.

## Why it hurts
Nothing moves. The loss changes only because the batches do, and the run looks slow rather than
broken.

## What to do
Step after each backward, or at the end of each accumulation window:

    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

## Not the fix
Raising the learning rate: it is never used.

## Known limits
Weights updated by hand, or by code that cannot be followed, keep this rule silent. So does a run
that was stopped early.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import Actor, Event, EventKind, Source, Tape
from gradclinic.findings import Finding, Fix, Insert, Severity, Side
from gradclinic.rules._rule import Rule
from gradclinic.rules.order._wording import order_seen

rule = Rule(
    "GC104",
    "missing-step",
    Severity.ERROR,
    since="0.1.0",
    sources=(Source.STATIC, Source.RUNTIME),
    topic="step after backward",
    needs=(EventKind.BACKWARD,),
    explains=("GC612", "GC306"),
    subsumes=("GC114",),
)

BAD = """
import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(20):
    x = torch.randn(8, 4)
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
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

GOOD_UPDATED_BY_HAND = """
import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(20):
    x = torch.randn(8, 4)
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    with torch.no_grad():
        for p in model.parameters():
            p.sub_(optimizer.param_groups[0]["lr"] * p.grad)
"""

ENOUGH_BACKWARDS = 3


@rule.check
def never_stepped(tape: Tape) -> Iterator[Finding]:
    for optimizer in tape.optimizers:
        if not tape.shows_all_of(tape.actors[optimizer]):
            continue
        timeline = tape.timeline(optimizer)
        if tape.count(EventKind.STEP, optimizer) or any(_may_update(event) for event in timeline):
            continue
        if tape.source is Source.STATIC and _updated_by_another(tape, tape.actors[optimizer]):
            continue
        built = next((e.index for e in tape.of_actor(optimizer, EventKind.BUILD)), -1)
        backwards = [
            e
            for e in timeline
            if e.kind is EventKind.BACKWARD and e.optimizers and optimizer in e.optimizers and e.index > built
        ]
        if len(backwards) < ENOUGH_BACKWARDS or len(backwards) == len({e.where for e in backwards}):
            continue
        name = tape.name(optimizer)
        yield rule.finding(
            f"backward() fills the gradients of {name}, and {name}.step() is never called",
            backwards[0],
            evidence={
                "order seen": order_seen(
                    timeline, EventKind.ZERO_GRAD, EventKind.BACKWARD, EventKind.CLIP, EventKind.STEP
                ),
                "optimizer built at": tape.actors[optimizer].built or "unknown",
            },
            fix=_step(tape, optimizer, backwards[0]),
            confidence=0.95,
            subject=optimizer,
        )


def _updated_by_another(tape: Tape, optimizer: Actor) -> bool:
    """An engine may step what an optimizer was built for too: that one is then merely left over."""
    stepped = {event.actor for event in tape.of_kind(EventKind.STEP)}
    models = frozenset(optimizer.of)
    return any(
        not models or not other.of or other.acts_on_any_of(models)
        for id, other in tape.actors.items()
        if id in stepped
    )


def _may_update(event: Event) -> bool:
    return event.kind in (EventKind.OPAQUE, EventKind.WEIGHT_WRITE, EventKind.STEP)


def _step(tape: Tape, optimizer: str, backward: Event) -> Fix:
    actor = tape.actors[optimizer]
    text = f"call {actor.name}.step() after backward()"
    # Only where it was built is it known to be called so.
    known = actor.built is not None and actor.built.function in ("", backward.where.function)
    if not known or backward.attrs.get("scaler"):
        return Fix(text)
    return Fix(text, changes=(Insert(f"{actor.name}.step()", (), Side.AFTER, backward.where),))
