"""Clips that act on no gradient, shared by the two rules about their place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gradclinic.facts import Event, EventKind, Tape, cadence
from gradclinic.findings import Fix, Move, Side

GRADIENT_STATE = frozenset(
    {EventKind.BACKWARD, EventKind.GRAD_WRITE, EventKind.STEP, EventKind.ZERO_GRAD, EventKind.OPAQUE}
)
NEW_ITERATION = frozenset({EventKind.BATCH, EventKind.FORWARD, EventKind.LOSS})


def misplaced_clips(
    tape: Tape, optimizer: str, *, after: EventKind
) -> Iterator[tuple[Event, tuple[Event, ...]]]:
    """Clip call sites that act on no gradient each time, with the events before the first.

    `after` is STEP for a clip that follows the step of its own iteration, ZERO_GRAD for one that
    comes before the backward of its iteration. A site that ever follows a backward is neither, nor is
    one where none is in sight: what a test of a schedule clips and steps over and over is nothing.
    """
    timeline = tape.timeline(optimizer)
    if not any(event.kind is EventKind.BACKWARD for event in timeline):
        return
    # What an earlier phase of the training clipped it did for an optimizer of its own.
    built = next((event.index for event in tape.of_actor(optimizer, EventKind.BUILD)), -1)
    clips = tuple(event for event in timeline if event.kind is EventKind.CLIP and event.index > built)
    for _, at_site in cadence(clips):
        states = [_state_before(timeline, clip) for clip in at_site]
        judged = [state for state in states if state is not None]
        if judged and all(state is after for state in judged):
            first = at_site[states.index(after)]
            position = timeline.index(first)
            yield first, _since_last_backward(timeline[:position])


def _state_before(timeline: tuple[Event, ...], clip: Event) -> EventKind | None:
    """STEP, ZERO_GRAD or BACKWARD: what the gradients are when `clip` runs; None if unknown."""
    new_iteration = False
    for event in reversed(timeline[: timeline.index(clip)]):
        if event.kind in NEW_ITERATION:
            new_iteration = True
        elif event.kind is EventKind.OPAQUE:
            return None
        elif event.kind in (EventKind.BACKWARD, EventKind.GRAD_WRITE):
            return EventKind.BACKWARD
        elif event.kind is EventKind.ZERO_GRAD:
            return EventKind.ZERO_GRAD
        elif event.kind is EventKind.STEP:
            return EventKind.ZERO_GRAD if new_iteration else EventKind.STEP
    return None


def _since_last_backward(events: tuple[Event, ...]) -> tuple[Event, ...]:
    for position in range(len(events) - 1, -1, -1):
        if events[position].kind is EventKind.BACKWARD:
            return events[position:]
    return events


def moved_before_step(text: str, tape: Tape, clip: Event, around: Iterable[Event]) -> Fix:
    """The clip put right before the first step of `around`."""
    events = tuple(around)
    step = next((event for event in events if event.kind is EventKind.STEP), None)
    if step is None:
        return Fix(text)
    backwards = tuple(event.where for event in events if event.kind is EventKind.BACKWARD)
    return Fix(
        text,
        changes=(Move(clip.where, Side.BEFORE, step.where, over=backwards),),
        # Gradients that go through a scaler must be unscaled there first; a rule of its own sees to that.
        safe=len(tape.optimizers) == 1 and not step.attrs.get("scaler"),
    )
