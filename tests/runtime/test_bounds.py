"""What a recording keeps, and for how long."""

from __future__ import annotations

import gc
import tracemalloc
import weakref

import torch
from torch import nn

from gradclinic.engine import judge
from gradclinic.facts import EventKind
from gradclinic.runtime import Recording
from tests.runtime.conftest import tape_of


def train(steps: int) -> weakref.ref[nn.Module]:
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 100)
    for _ in range(steps):
        loss = nn.functional.mse_loss(model(torch.randn(8, 4)), torch.zeros(8, 1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return weakref.ref(model)


def test_a_long_run_is_cut_at_a_step_and_its_totals_go_on() -> None:
    with Recording(capacity=50) as recording:
        train(200)

    tape = tape_of(recording)
    assert len(tape.events) <= 50
    assert tape.events[-1].kind is EventKind.STEP
    assert tape.count(EventKind.STEP) == tape.count(EventKind.STEP, tape.optimizers[0]) == 200
    assert tape.count(EventKind.SCHEDULE) == tape.count(EventKind.BACKWARD) == 200
    assert judge([recording.observation()]) == ()


def test_nothing_of_the_users_is_kept_alive() -> None:
    gc.collect()
    with Recording() as recording:
        model = train(5)
        gc.collect()
        assert model() is None

    assert recording.observation().cases


def test_memory_does_not_grow_with_the_steps() -> None:
    with Recording(capacity=100) as recording:
        train(200)
        gc.collect()
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        train(1000)
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()

    assert grown < 50_000
    assert recording.steps == 1200


def test_tensors_kept_alive_do_not_grow_while_events_are_recorded() -> None:
    def living() -> int:
        gc.collect()
        return sum(1 for thing in gc.get_objects() if type(thing) in (torch.Tensor, nn.Parameter))

    with Recording():
        train(50)
        before = living()
        train(200)
        assert living() <= before


def test_a_run_with_no_training_gives_no_tape() -> None:
    with Recording() as recording:
        nn.Linear(2, 2)(torch.ones(1, 2))

    assert recording.observation().cases == ()
