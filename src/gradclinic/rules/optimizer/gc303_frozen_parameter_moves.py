"""A frozen parameter is still moved by its optimizer.

## What it finds
A parameter with `requires_grad=False` in an optimizer's hands whose values a step changes: a
gradient from before it was frozen is still there, be it zeros, so weight decay and momentum act.
From source also the opposite mistake: all that an optimizer holds is frozen after it was built, so
that its steps change nothing.

## Why it hurts
The part that was to be kept drifts: decay shrinks it towards zero, momentum carries it on. And an
optimizer of frozen parameters trains nothing, while the loss is printed as ever.

## What to do
Give the optimizer only what trains, `[p for p in model.parameters() if p.requires_grad]`, or set
the gradient of what is frozen to None: `zero_grad(set_to_none=True)` after freezing.

## Not the fix
A smaller learning rate for it: it drifts slower.

## Known limits
Looked at on a few steps of a run, and only for tensors of up to a million values. In source, code
that makes parameters require a gradient again is not judged.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import Actor, Census, Event, EventKind, Source, Tape
from gradclinic.findings import Finding, Severity
from gradclinic.rules._naming import listed, modules_of
from gradclinic.rules._rule import Rule

rule = Rule(
    "GC303",
    "frozen-parameter-moves",
    Severity.WARNING,
    since="0.1.0",
    sources=(Source.STATIC, Source.RUNTIME),
    topic="frozen parts",
)

BAD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
for stage, steps in (("all of it", 4), ("the head", 36)):
    if stage == "the head":
        model[0].requires_grad_(False)
    for step in range(steps):
        x = torch.randn(32, 4)
        optimizer.zero_grad(set_to_none=False)
        loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
        loss.backward()
        optimizer.step()
"""

GOOD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
for stage, steps in (("all of it", 4), ("the head", 36)):
    if stage == "the head":
        model[0].requires_grad_(False)
    for step in range(steps):
        x = torch.randn(32, 4)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
        loss.backward()
        optimizer.step()
"""


@rule.check
def moved_though_frozen(census: Census) -> Iterator[Finding]:
    moved = [p for p in census.parameters if p.moved_frozen and not p.trainable]
    if not moved:
        return
    holder = census.holder_of(moved[0])
    yield rule.finding(
        f"{listed(modules_of(moved), most=2)} does not require a gradient, and "
        f"{holder.name if holder else 'its optimizer'} moves it all the same",
        holder.built if holder else None,
        evidence={"frozen, and changed by a step": listed(p.name for p in moved)},
        fix="pass only parameters that require a gradient, or set the frozen ones' .grad to None",
        confidence=0.95,
        subject=holder.id if holder else "",
    )


@rule.check
def frozen_in_its_hands(tape: Tape) -> Iterator[Finding]:
    for optimizer in tape.optimizers:
        actor = tape.actors[optimizer]
        for freeze in _freezes(tape, actor):
            after = tape.events[freeze.index + 1 :]
            steps = [e for e in after if e.kind is EventKind.STEP and e.actor == optimizer]
            if len(steps) < 2 or any(e.kind is EventKind.OPAQUE and e.concerns(optimizer) for e in after):
                continue
            if actor.acts_within(freeze.attrs["keys"]):
                message = f"all that {actor.name} holds is frozen here, so that its steps change nothing"
                fix = "leave what is to be trained unfrozen, or give the optimizer what is"
            elif actor.attrs.get("inertia") and _keeps_gradients(tape, freeze, optimizer):
                message = f"frozen while {actor.name} holds it with gradients of zero: it moves all the same"
                fix = "clear gradients with zero_grad(), which sets them to None"
            else:
                continue
            yield rule.finding(
                message, freeze, evidence={"optimizer built": str(actor.built)}, fix=fix, subject=optimizer
            )
            break


def _freezes(tape: Tape, optimizer: Actor) -> Iterator[Event]:
    """Parts that were surely frozen as a whole while the optimizer held them."""
    built = next(tape.of_actor(optimizer.id, EventKind.BUILD), None)
    for event in tape.of_kind(EventKind.FREEZE):
        if built is not None and built.index < event.index and event.attrs.get("keys"):
            yield event


def _keeps_gradients(tape: Tape, freeze: Event, optimizer: str) -> bool:
    """Whether a backward had filled them before, and every clear since puts zeros in their place."""
    held = freeze.optimizers is not None and optimizer in freeze.optimizers
    before = tape.events[: freeze.index]
    clears = [e for e in tape.of_kind(EventKind.ZERO_GRAD) if e.concerns(optimizer)]
    return (
        held
        and any(e.kind is EventKind.BACKWARD and e.concerns(optimizer) for e in before)
        and all(e.attrs.get("keeps") for e in clears)
    )
