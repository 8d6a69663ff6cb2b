"""The order rules over the space of correct loops, and over each way to break one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from gradclinic.engine import judge
from gradclinic.facts import Event, EventKind, Observation, Source, Tape
from tests.rules.loops import Loop, loops, tape_of


def codes_of(tape: Tape) -> list[str]:
    return [finding.code for finding in judge([Observation(tape.source, ((tape,),))])]


def edited(tape: Tape, edit: Callable[[Sequence[Event]], list[Event]]) -> Tape:
    return replace(tape, events=tuple(edit(tape.events)))


def without(kind: EventKind) -> Callable[[Sequence[Event]], list[Event]]:
    return lambda events: [event for event in events if event.kind is not kind]


def moved(kind: EventKind, *, before: EventKind) -> Callable[[Sequence[Event]], list[Event]]:
    """Every event of `kind` slips in front of the last `before` ahead of it."""

    def edit(events: Sequence[Event]) -> list[Event]:
        done: list[Event] = []
        for event in events:
            if event.kind is kind and any(e.kind is before for e in done):
                place = max(i for i, e in enumerate(done) if e.kind is before)
                done.insert(place, event)
            else:
                done.append(event)
        return done

    return edit


@given(loops)
def test_a_correct_loop_is_left_alone(loop: Loop) -> None:
    assert codes_of(tape_of(loop)) == []


@given(loops)
def test_a_call_that_cannot_be_followed_silences_what_it_could_hide(loop: Loop) -> None:
    """Whatever is missing may be inside the unknown call."""
    tape = edited(tape_of(loop), without(EventKind.ZERO_GRAD))
    unknown = [
        piece
        for event in tape.events
        for piece in (
            (Event(EventKind.OPAQUE, event.where, None, None), event)
            if event.kind is EventKind.STEP
            else (event,)
        )
    ]
    assert "GC101" not in codes_of(replace(tape, events=tuple(unknown)))


# The edit that breaks a loop, and what the loop needs for the edit to break anything.
BREAKS: list[tuple[str, Callable[[Sequence[Event]], list[Event]], dict[str, Any]]] = [
    ("GC101", without(EventKind.ZERO_GRAD), {"epochs": 2}),
    ("GC102", moved(EventKind.ZERO_GRAD, before=EventKind.STEP), {"clear_first": False}),
    ("GC104", without(EventKind.STEP), {"windows": 3}),
    ("GC109", moved(EventKind.STEP, before=EventKind.CLIP), {"clip": True}),
    ("GC112", moved(EventKind.SCHEDULE, before=EventKind.STEP), {"schedule": "update"}),
    ("GC501", without(EventKind.UNSCALE), {"clip": True, "amp": True}),
    ("GC504", without(EventKind.SCALER_UPDATE), {"amp": True, "epochs": 2}),
]


@pytest.mark.parametrize(("code", "edit", "needs"), [pytest.param(*b, id=b[0]) for b in BREAKS])
@given(loop=loops)
def test_a_broken_loop_is_named(
    code: str,
    edit: Callable[[Sequence[Event]], list[Event]],
    needs: dict[str, Any],
    loop: Loop,
) -> None:
    assert code in codes_of(edited(tape_of(replace(loop, **needs)), edit))


@given(loops)
def test_a_finding_must_hold_on_every_path_that_passes_its_place(loop: Loop) -> None:
    """A clear that only one branch makes still clears the step of the charge."""
    right = tape_of(loop)
    wrong = edited(right, without(EventKind.ZERO_GRAD))
    assert (
        judge(
            [
                Observation(
                    Source.STATIC,
                    ((replace(right, source=Source.STATIC), replace(wrong, source=Source.STATIC)),),
                )
            ]
        )
        == ()
    )


@pytest.mark.parametrize(("ahead_of", "told"), [(EventKind.EPOCH_BEGIN, []), (EventKind.FORWARD, ["GC504"])])
def test_a_scaler_of_each_short_training_is_not_one_of_each_step(
    ahead_of: EventKind, told: list[str]
) -> None:
    loop = Loop(Source.STATIC, 4, 1, 1, 0, clear_first=True, clip=False, amp=True, schedule="")
    tape = tape_of(loop)
    built = replace(tape.events[0], actor="scaler")
    events = [part for event in tape.events for part in ([built] * (event.kind is ahead_of) + [event])]
    assert codes_of(replace(tape, events=tuple(events))) == told
