"""Correct training loops as tapes, over the space of ways to write one."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from gradclinic.facts import Actor, ActorKind, Event, EventKind, Location, Source, Tape

OPTIMIZER, SCALER, SCHEDULE = "optimizer", "scaler", "scheduler"
LINES = {kind: line for line, kind in enumerate(EventKind, start=10)}


@dataclass(frozen=True)
class Loop:
    """One correct way to train."""

    source: Source
    epochs: int
    windows: int
    accumulate: int
    tail: int
    clear_first: bool
    clip: bool
    amp: bool
    schedule: str


loops = st.builds(
    Loop,
    source=st.sampled_from([Source.STATIC, Source.RUNTIME]),
    epochs=st.integers(1, 3),
    windows=st.integers(2, 4),
    accumulate=st.integers(1, 4),
    tail=st.integers(0, 2),
    clear_first=st.booleans(),
    clip=st.booleans(),
    amp=st.booleans(),
    schedule=st.sampled_from(["", "update", "epoch"]),
)


def tape_of(loop: Loop) -> Tape:
    events: list[Event] = []
    both = frozenset({OPTIMIZER})

    def emit(kind: EventKind, actor: str | None = None, **attrs: object) -> None:
        events.append(Event(kind, Location("train.py", LINES[kind], 4), actor, both, attrs))

    def update() -> None:
        if loop.amp and loop.clip:
            emit(EventKind.UNSCALE, SCALER)
        if loop.clip:
            emit(EventKind.CLIP)
        emit(EventKind.STEP, OPTIMIZER, **({"scaler": SCALER, "skipped": False} if loop.amp else {}))
        if loop.amp:
            emit(EventKind.SCALER_UPDATE, SCALER)
        if loop.schedule == "update":
            emit(EventKind.SCHEDULE, SCHEDULE, guarded=True)
        if not loop.clear_first:
            emit(EventKind.ZERO_GRAD, OPTIMIZER)

    emit(EventKind.BUILD, OPTIMIZER)
    lengths = [loop.accumulate] * loop.windows + ([loop.tail] if 0 < loop.tail < loop.accumulate else [])
    for _ in range(loop.epochs):
        emit(EventKind.EPOCH_BEGIN)
        for length in lengths:
            for micro in range(length):
                emit(EventKind.BATCH)
                if loop.clear_first and micro == 0:
                    emit(EventKind.ZERO_GRAD, OPTIMIZER)
                emit(EventKind.FORWARD)
                emit(EventKind.LOSS, reduction="mean", valid=8)
                emit(EventKind.BACKWARD, scaled=length > 1, **({"scaler": SCALER} if loop.amp else {}))
            update()
        emit(EventKind.EPOCH_END)
        if loop.schedule == "epoch":
            emit(EventKind.SCHEDULE, SCHEDULE, guarded=True)
    return Tape(loop.source, tuple(events), _actors(loop, len(lengths)))


def _actors(loop: Loop, updates_per_epoch: int) -> dict[str, Actor]:
    planned = loop.epochs * (updates_per_epoch if loop.schedule == "update" else 1)
    built = [Actor(OPTIMIZER, ActorKind.OPTIMIZER, "optimizer", "SGD")]
    if loop.amp:
        built.append(Actor(SCALER, ActorKind.SCALER, "scaler", "GradScaler"))
    if loop.schedule:
        attrs = {"torch": True, "planned": planned, "planned_unit": loop.schedule}
        built.append(
            Actor(
                SCHEDULE, ActorKind.SCHEDULE, "scheduler", "CosineAnnealingLR", of=(OPTIMIZER,), attrs=attrs
            )
        )
    return {actor.id: actor for actor in built}
