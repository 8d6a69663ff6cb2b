"""`optimizer.step()` is called on gradients that still carry the loss scale.

## What it finds
`scaler.scale(loss).backward()` followed by `optimizer.step()` instead of
`scaler.step(optimizer)`. From source also where `scaler.unscale_(optimizer)` stands between the two and
nothing asks whether the gradients are finite.

## Why it hurts
The update is larger by the loss scale, often 65536, or, under Adam, tuned to a scale that jumps
whenever the scaler adapts it. And a step with overflowed gradients is taken instead of skipped: since the
scale grows until something overflows, that writes NaN into the weights sooner or later, unscaled or not.

## What to do

    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()

## Not the fix
Dividing the learning rate by the scale: the scale changes during the run.

## Known limits
Between `unscale_` and the step nothing may happen but a clip, or the gradients may have been looked at; a run
accepts every step after `unscale_`, for it does not see what was asked before it. Nothing is said in a file
that speaks of `isfinite` and the like, of bfloat16, or of a scaler that is switched off.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import ActorKind, Event, EventKind, Source, Tape, Update, updates
from gradclinic.facts.scaling import UncheckedStep
from gradclinic.findings import Change, Finding, Fix, Insert, Rewrite, Severity, Side, Word
from gradclinic.rules._rule import Rule
from gradclinic.rules.order._wording import order_seen
from gradclinic.rules.precision._scale import carried_scaler

rule = Rule(
    "GC503",
    "step-bypasses-scaler",
    Severity.ERROR,
    since="0.1.0",
    sources=(Source.STATIC, Source.RUNTIME),
    topic="loss scaling",
    needs=(ActorKind.SCALER, EventKind.STEP),
    explains=("GC601", "GC307", "GC506", "GC507", "GC508", "GC612"),
    subsumes=("GC504",),
)

BAD = """
import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu")
for step in range(20):
    x = torch.randn(8, 4)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    scaler.scale(loss).backward()
    optimizer.step()
"""

GOOD = """
import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu")
for step in range(20):
    x = torch.randn(8, 4)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
"""


@rule.check
def stepped_with_scale(tape: Tape) -> Iterator[Finding]:
    for optimizer in tape.optimizers:
        for update in updates(tape, optimizer):
            scaler = None if update.step.attrs.get("scaler") else carried_scaler(update, update.step)
            if scaler is None:
                continue
            yield rule.finding(
                f"{tape.name(optimizer)}.step() uses gradients that carry the scale of {tape.name(scaler)}",
                update.step,
                evidence={
                    "order seen": order_seen(
                        update.events, EventKind.BACKWARD, EventKind.UNSCALE, EventKind.STEP
                    )
                },
                fix=_through_scaler(tape, scaler, update),
                also=_scaled_way(tape, scaler, update),
                confidence=0.96,
                subject=optimizer,
            )
            break


@rule.check
def stepped_unchecked(step: UncheckedStep) -> Iterator[Finding]:
    words = (Word(step.unscaled, "unscale_"), Word(step.where, "step"))
    yield rule.finding(
        f"{step.optimizer}.step() takes what {step.scaler} has unscaled, also where it overflowed",
        step.where,
        evidence={"unscaled at": step.unscaled},
        fix=Fix(
            f"call {step.scaler}.step({step.optimizer}), which leaves out a step that would write NaN",
            changes=(Rewrite(step.where, "{}.step({})", words),),
        ),
        confidence=0.93,
    )


def _scaled_way(tape: Tape, scaler: str, update: Update) -> tuple[Event, ...]:
    """What makes a path one that scales, where the same step is right on others: `if amp: scale() … step()`.

    Only where the scaler is there in any case, is told of the step that went around it, and nothing steps
    through it: or the way may be one that two names for one setting lead to.
    """
    actor = tape.actors.get(scaler)
    told = any(e.index > update.step.index for e in tape.of_actor(scaler, EventKind.SCALER_UPDATE))
    if actor is None or actor.built is None or not told:
        return ()
    if actor.attrs.get("escapes") or actor.attrs.get("steps"):
        return ()
    return (update.backwards[-1],)


def _through_scaler(tape: Tape, scaler: str, update: Update) -> Fix:
    step = update.step.where
    word = Word(update.backwards[-1].where, "scale")
    changes: list[Change] = [Rewrite(step, "{}.step({})", (word, Word(step, "step")))]
    if not tape.count(EventKind.SCALER_UPDATE, scaler):
        changes.append(Insert("{}.update()", (word,), Side.AFTER, step))
    return Fix(
        f"call {tape.name(scaler)}.step({tape.name(update.optimizer)}), then its update()",
        changes=tuple(changes),
        safe=len(tape.optimizers) == 1,
    )
