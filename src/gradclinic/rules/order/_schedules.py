"""What the schedule rules ask of a tape."""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import Actor, ActorKind, EventKind, Tape


def schedules(tape: Tape) -> Iterator[tuple[Actor, str]]:
    """Each torch schedule with the optimizer it drives, where that is known and unambiguous."""
    for actor in tape.actors.values():
        if actor.kind is not ActorKind.SCHEDULE or actor.attrs.get("torch") is False:
            continue
        if actor.attrs.get("constant"):
            continue  # which does nothing, whenever it is advanced
        driven = [id for id in actor.of if id in tape.optimizers]
        if not driven and len(tape.optimizers) == 1:
            driven = list(tape.optimizers)
        if len(driven) == 1:
            yield actor, driven[0]


def training_begins(tape: Tape) -> int:
    """Where the first backward is: what was called before prepared the training, and ticked nothing."""
    return next((event.index for event in tape.of_kind(EventKind.BACKWARD)), 0)


def unknown_calls(tape: Tape, schedule: Actor, optimizer: str, *, after: int = 0) -> bool:
    """True when code that cannot be followed may have advanced the schedule or the optimizer."""
    return any(
        event.index >= after and (event.actor == schedule.id or event.concerns(optimizer))
        for event in tape.of_kind(EventKind.OPAQUE)
    )
