"""Evaluations of all data at once: one forward in eval mode, between one update and the next."""

from __future__ import annotations

from collections.abc import Collection

from gradclinic.facts import Event, EventKind, Location, Tape

_ENDS_A_STEP = (EventKind.STEP, EventKind.EPOCH_END)
_BEGINS_ANOTHER = (EventKind.BACKWARD, EventKind.BATCH, EventKind.EPOCH_BEGIN)


def between_updates(tape: Tape, forward: Event, trained: Collection[tuple[str | None, Location]]) -> bool:
    """`model.eval(); out = model(x_test)` in a loop whose other forwards are trained, each time around.

    Only after the update: what is computed before it may go into the loss.
    """
    if not (forward.attrs.get("plainly") and forward.attrs.get("of_held_out")):
        return False
    if not any(actor == forward.actor and where != forward.where for actor, where in trained):
        return False
    return follows_an_update(tape, forward) and _comes_again(tape, forward)


def follows_an_update(tape: Tape, forward: Event) -> bool:
    """Whether nothing of the next update has begun since the last one."""
    for event in reversed(tape.events[: forward.index]):
        if event.kind in _BEGINS_ANOTHER:
            return False
        if event.kind in _ENDS_A_STEP:
            return True
    return False


def _comes_again(tape: Tape, forward: Event) -> bool:
    """With training in between: one evaluation at the end costs next to nothing."""
    same = [
        event.index
        for event in tape.of_kind(EventKind.FORWARD)
        if event.actor == forward.actor and event.where == forward.where
    ]
    between = tape.events[same[0] : same[-1]]
    return any(event.kind is EventKind.BACKWARD for event in between)
