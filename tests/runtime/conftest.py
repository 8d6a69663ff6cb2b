"""Training inside the test, with the tape it leaves."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from gradclinic.facts import EventKind, Tape
from gradclinic.runtime import Recording

LOOP = frozenset(
    {
        EventKind.ZERO_GRAD,
        EventKind.BACKWARD,
        EventKind.GRAD_WRITE,
        EventKind.WEIGHT_WRITE,
        EventKind.UNSCALE,
        EventKind.CLIP,
        EventKind.STEP,
        EventKind.SCALER_UPDATE,
        EventKind.SCHEDULE,
    }
)

Record = Callable[[Callable[[], object]], Tape]


@pytest.fixture(autouse=True)
def _same_numbers_each_time() -> None:
    torch.manual_seed(0)


@pytest.fixture
def record() -> Record:
    """The tape of calling a function; fails if an observer did."""

    def run(train: Callable[[], object]) -> Tape:
        with Recording() as recording:
            train()
        assert recording.problems == ()
        return tape_of(recording)

    return run


def tape_of(recording: Recording) -> Tape:
    (tape,) = (fact for case in recording.observation().cases for fact in case if isinstance(fact, Tape))
    return tape


def order(tape: Tape, *, of: frozenset[EventKind] = LOOP) -> str:
    """The kinds of the events, in order."""
    return " ".join(event.kind.replace(" ", "-") for event in tape.events if event.kind in of)
