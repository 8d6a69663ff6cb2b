"""Gradients are clipped while they still carry the loss scale.

## What it finds
`clip_grad_norm_` or `clip_grad_value_` after `scaler.scale(loss).backward()` with no
`scaler.unscale_(optimizer)` in between; the same inside the block of apex's `amp.scale_loss`, which
takes the scale out where it ends.

## Why it hurts
The gradients are larger by the loss scale, often 65536. The limit is hit at every step and, once
the scaler divides the scale out, what is left is `max_norm / scale`: updates thousands of times
too small, shrinking further each time the scale grows.

## What to do
Take the scale out first:

    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()

## Not the fix
Raising `max_norm` by the scale: the scale changes during the run. Raising the learning rate.

## Known limits
A scaler built with `enabled=False` is left alone. One whose `enabled` depends on a flag is judged
as enabled, but for the paths on which the program asks for that flag and it is off.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import Event, EventKind, Source, Tape, Update, surely, updates
from gradclinic.findings import Finding, Fix, Insert, Severity, Side, Word
from gradclinic.rules._rule import Rule
from gradclinic.rules.order._wording import order_seen
from gradclinic.rules.precision._scale import carried_scaler

rule = Rule(
    "GC501",
    "clip-without-unscale",
    Severity.ERROR,
    since="0.1.0",
    sources=(Source.STATIC, Source.RUNTIME),
    topic="loss scaling",
    needs=(EventKind.CLIP, EventKind.SCALER_UPDATE),
    explains=("GC601", "GC604", "GC306", "GC612"),
)

BAD = """
import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu")
for step in range(20):
    x = torch.randn(8, 4)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    scaler.scale(loss).backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
"""

GOOD = """
import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu")
for step in range(20):
    x = torch.randn(8, 4)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
"""


@rule.check
def scaled_gradients_clipped(tape: Tape) -> Iterator[Finding]:
    yield from _clipped_in_block(tape)
    of_any: set[object] = set()
    for optimizer in tape.optimizers:
        reported: set[object] = set()
        # What an earlier phase of the training clipped it did for an optimizer of its own.
        built = next((event.index for event in tape.of_actor(optimizer, EventKind.BUILD)), -1)
        for update in updates(tape, optimizer):
            for clip in (event for event in update.of_kind(EventKind.CLIP) if event.index > built):
                scaler = carried_scaler(update, clip)
                if scaler is None or clip.attrs.get("scaled_limit") or clip.where in reported | of_any:
                    continue
                if surely(clip, tape, optimizer):
                    reported.add(clip.where)
                elif _whatever_it_clips(tape):
                    of_any.add(clip.where)
                else:
                    continue
                yield rule.finding(
                    f"gradients are clipped while they carry the scale of {tape.name(scaler)}",
                    clip,
                    evidence={
                        "order seen": order_seen(
                            update.events,
                            EventKind.BACKWARD,
                            EventKind.UNSCALE,
                            EventKind.CLIP,
                            EventKind.STEP,
                        )
                    },
                    fix=_unscale(tape, scaler, update, clip),
                    also=_scaled_way(update, clip, scaler),
                    confidence=0.96,
                    subject=optimizer,
                )


def _clipped_in_block(tape: Tape) -> Iterator[Finding]:
    for clip in {e.where: e for e in tape.of_kind(EventKind.CLIP) if e.attrs.get("scaling")}.values():
        yield rule.finding(
            "gradients are clipped inside the block of amp.scale_loss, while they carry its scale",
            clip,
            fix="clip after the block, which takes the scale out of the gradients where it ends",
            confidence=0.96,
        )


def _whatever_it_clips(tape: Tape) -> bool:
    """Whether all gradients there are carry a scale at all times: it matters not which ones are clipped.

    Before the first backward of an update there are none, whatever a call does there.
    """
    backwards = list(tape.of_kind(EventKind.BACKWARD))
    if not backwards or not all(event.attrs.get("scaler") for event in backwards):
        return False
    unclear = {EventKind.UNSCALE, EventKind.GRAD_WRITE}
    for event in tape.events[backwards[0].index :]:
        if event.kind is EventKind.BACKWARD:
            unclear.add(EventKind.OPAQUE)
        elif event.kind is EventKind.STEP:
            unclear.discard(EventKind.OPAQUE)
        elif event.kind in unclear:
            return False
    return True


def _unscale(tape: Tape, scaler: str, update: Update, clip: Event) -> Fix:
    step = update.step
    text = f"call {tape.name(scaler)}.unscale_({tape.name(update.optimizer)}) before the clip"
    if step.attrs.get("scaler") != scaler:
        return Fix(text)
    words = (Word(step.where, "step"), Word(step.where, "step", 0))
    return Fix(
        text,
        changes=(Insert("{}.unscale_({})", words, Side.BEFORE, clip.where),),
        safe=len(tape.optimizers) == 1,
    )


def _scaled_way(update: Update, clip: Event, scaler: str) -> tuple[Event, ...]:
    """What makes a path one that scales: where nothing is scaled the same clip is right, and says nothing."""
    if update.step.attrs.get("scaler") != scaler:
        return ()
    return (*[e for e in update.backwards if e.index < clip.index][-1:], update.step)
