"""Loss scalers and learning-rate schedules on the tape."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import nn
from torch.optim import lr_scheduler

from gradclinic.facts import EventKind, Tape
from tests.runtime.conftest import Record, order


def scaled_loop(scaler: torch.amp.GradScaler, steps: int = 1, *, fused: bool = False) -> None:
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, fused=fused)
    for _ in range(steps):
        optimizer.zero_grad()
        scaler.scale((10 * model(torch.randn(8, 4))).pow(2).mean()).backward()
        scaler.step(optimizer)
        scaler.update()


@pytest.mark.parametrize("fused", [False, True])
def test_a_step_through_the_scaler_is_one_step_and_a_skipped_one_is_skipped(
    record: Record, fused: bool
) -> None:
    tape = record(lambda: scaled_loop(torch.amp.GradScaler("cpu", init_scale=2.0**127), 12, fused=fused))

    assert order(tape) == " ".join(["zero_grad backward step scaler-update"] * 12)
    skipped = [event.attrs["skipped"] for event in tape.of_kind(EventKind.STEP)]
    assert skipped[0] is True
    assert skipped[-1] is False
    (scaler,) = (actor.id for actor in tape.actors.values() if actor.kind == "scaler")
    assert {event.attrs["scaler"] for event in tape.of_kind(EventKind.BACKWARD)} == {scaler}
    assert {event.attrs["scaler"] for event in tape.of_kind(EventKind.STEP)} == {scaler}


def test_a_disabled_scaler_leaves_no_trace(record: Record) -> None:
    tape = record(lambda: scaled_loop(torch.amp.GradScaler("cpu", enabled=False)))

    assert order(tape) == "zero_grad backward step"
    assert "scaler" not in next(tape.of_kind(EventKind.BACKWARD)).attrs
    assert "scaler" not in next(tape.of_kind(EventKind.STEP)).attrs


def test_a_loss_divided_after_scaling_still_carries_the_scale(record: Record) -> None:
    def train() -> None:
        model = nn.Linear(4, 1)
        scaler = torch.amp.GradScaler("cpu")
        (scaler.scale(model(torch.randn(8, 4)).mean()) / 4).backward()

    (backward,) = record(train).of_kind(EventKind.BACKWARD)

    assert backward.attrs["scaler"]
    assert backward.attrs["scaled"] is True


def test_the_scale_itself_does_not_count_as_dividing_the_loss(record: Record) -> None:
    tape = record(lambda: scaled_loop(torch.amp.GradScaler("cpu")))

    assert next(tape.of_kind(EventKind.BACKWARD)).attrs["scaled"] is False


def ticks(record: Record, make: object, count: int = 3) -> Tape:
    def train() -> None:
        model = nn.Linear(2, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        schedule = make(optimizer)  # type: ignore[operator]
        for _ in range(count):
            optimizer.zero_grad()
            model(torch.ones(1, 2)).sum().backward()
            optimizer.step()
            schedule.step()

    return record(train)


def warmup_then_cosine(optimizer: torch.optim.Optimizer) -> lr_scheduler.LRScheduler:
    warmup = lr_scheduler.LinearLR(optimizer, total_iters=2)
    cosine = lr_scheduler.CosineAnnealingLR(optimizer, T_max=8)
    return lr_scheduler.SequentialLR(optimizer, [warmup, cosine], milestones=[2])


def warmup_by_partial(optimizer: torch.optim.Optimizer) -> lr_scheduler.LRScheduler:
    def rate(step: int, *, num_warmup_steps: int, num_training_steps: int) -> float:
        return min(1.0, step / num_warmup_steps) * (1 - step / num_training_steps)

    return lr_scheduler.LambdaLR(optimizer, partial(rate, num_warmup_steps=2, num_training_steps=50))


def warmup_by_closure(optimizer: torch.optim.Optimizer, num_training_steps: int = 40) -> object:
    return lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / num_training_steps)


@pytest.mark.parametrize(
    ("make", "planned"),
    [
        (lambda o: lr_scheduler.OneCycleLR(o, 0.1, total_steps=20), 20),
        (lambda o: lr_scheduler.CosineAnnealingLR(o, T_max=7), 7),
        (lambda o: lr_scheduler.PolynomialLR(o, total_iters=9), 9),
        (lambda o: lr_scheduler.StepLR(o, 5), None),
        (warmup_then_cosine, 10),
        (warmup_by_partial, 50),
        (warmup_by_closure, 40),
    ],
)
def test_a_schedule_ticks_once_per_call_and_knows_its_length(
    record: Record, make: object, planned: int | None
) -> None:
    tape = ticks(record, make)

    assert order(tape) == " ".join(["zero_grad backward step schedule"] * 3)
    (ticking,) = {event.actor for event in tape.of_kind(EventKind.SCHEDULE)}
    schedule = tape.actors[ticking or ""]
    assert schedule.attrs["planned"] == planned
    assert tape.optimizers[0] in schedule.of


def test_the_parts_of_a_schedule_belong_to_it(record: Record) -> None:
    tape = ticks(record, warmup_then_cosine)

    whole = next(a for a in tape.actors.values() if a.type == "SequentialLR")
    parts = {a.id for a in tape.actors.values() if a.type in ("LinearLR", "CosineAnnealingLR")}
    assert parts < set(whole.of)


class Warmup(lr_scheduler.LRScheduler):
    """A user's own schedule that hands over to another and does not call its base."""

    def __init__(self, optimizer: torch.optim.Optimizer, after: lr_scheduler.LRScheduler) -> None:
        self.after = after
        super().__init__(optimizer)

    def get_lr(self) -> list[float]:
        return list(self.base_lrs)

    def step(self, epoch: int | None = None) -> None:
        self.last_epoch += 1
        if self.last_epoch > 1:
            self.after.step()


def test_a_users_own_schedule_is_watched_too(record: Record) -> None:
    tape = ticks(record, lambda o: Warmup(o, lr_scheduler.StepLR(o, 5)))

    (ticking,) = {event.actor for event in tape.of_kind(EventKind.SCHEDULE)}
    assert tape.actors[ticking or ""].type == "Warmup"
    assert tape.count(EventKind.SCHEDULE) == 3
    (inner,) = (a.id for a in tape.actors.values() if a.type == "StepLR")
    assert inner in tape.actors[ticking or ""].of
