"""Accumulation, mixed precision and the frameworks that hide them."""

from __future__ import annotations

import pytest

from gradclinic.engine import judge
from gradclinic.facts import ActorKind, EventKind
from gradclinic.static import observe_source
from tests.static.reading import only_tape, spelled

BEGIN = """
import torch
from torch import nn
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
criterion = nn.MSELoss()
"""
WINDOWS = "batch backward batch backward step zero_grad "


@pytest.mark.parametrize(
    "guard",
    [
        "(i + 1) % accumulation_steps == 0",
        "i % accumulation_steps == accumulation_steps - 1",
        "not (i + 1) % args.grad_accum",
    ],
)
def test_a_guard_on_every_kth_batch_closes_a_window(guard: str):
    tape = only_tape(
        BEGIN
        + f"""
for i, (x, y) in enumerate(loader):
    loss = criterion(model(x), y) / k
    loss.backward()
    if {guard}:
        optimizer.step()
        optimizer.zero_grad()
"""
    )
    assert spelled(tape) == "epoch " + WINDOWS * 2 + "batch backward epoch-end"


def test_the_last_batch_closes_the_window_that_the_epoch_cuts():
    tape = only_tape(
        BEGIN
        + """
for i, (x, y) in enumerate(loader):
    loss = criterion(model(x), y)
    loss.backward()
    if (i + 1) % k == 0 or i + 1 == len(loader):
        optimizer.step()
        optimizer.zero_grad()
"""
    )
    assert spelled(tape) == "epoch " + WINDOWS * 2 + "batch backward step zero_grad epoch-end"


def test_known_numbers_are_counted_as_they_are():
    tape = only_tape(
        BEGIN
        + """
for i in range(10):
    criterion(model(x[i]), y[i]).backward()
    if (i + 1) % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()
"""
    )
    assert spelled(tape) == "epoch " + (
        "batch backward " * 4 + "step zero_grad "
    ) * 2 + "batch backward " * 2 + ("epoch-end")


def test_an_inner_loop_over_micro_batches_is_a_window():
    tape = only_tape(
        BEGIN
        + """
while True:
    for micro_step in range(gradient_accumulation_steps):
        x, y = get_batch("train")
        loss = criterion(model(x), y) / gradient_accumulation_steps
        loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
"""
    )
    assert spelled(tape).startswith(WINDOWS + WINDOWS)


@pytest.mark.parametrize(
    ("loss", "scaled"),
    [
        ("criterion(model(x), y)", False),
        ("criterion(model(x), y) / accumulate", True),
        ("criterion(model(x), y) + 0.1 * model(x).pow(2).mean()", False),
        ("criterion(model(x), y) / accumulate + penalty(model(x)) / accumulate", True),
        ("nn.MSELoss(reduction='sum')(model(x), y)", None),
        ("nn.functional.mse_loss(model(x), y, reduction='sum')", None),
        ("unknown(model(x), y)", None),
    ],
)
def test_whether_a_loss_was_divided_is_told_or_left_open(loss: str, scaled: bool | None):
    tape = only_tape(
        BEGIN
        + f"""
for x, y in loader:
    optimizer.zero_grad()
    loss = {loss}
    loss.backward()
    optimizer.step()
"""
    )
    assert {event.attrs["scaled"] for event in tape.of_kind(EventKind.BACKWARD)} == {scaled}


def test_a_scaler_is_on_the_backward_it_scales_and_on_the_step_that_goes_through_it():
    tape = only_tape(
        BEGIN
        + """
scaler = torch.cuda.amp.GradScaler()
for x, y in loader:
    optimizer.zero_grad()
    with torch.autocast("cuda"):
        loss = criterion(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
"""
    )
    assert "batch zero_grad backward unscale clip step scaler-update batch" in spelled(tape)
    (scaler,) = (id for id, actor in tape.actors.items() if actor.kind is ActorKind.SCALER)
    for event in tape.of_kind(EventKind.BACKWARD, EventKind.STEP):
        assert event.attrs["scaler"] == scaler


def test_a_scaler_switched_off_scales_nothing():
    tape = only_tape(
        BEGIN
        + """
scaler = torch.amp.GradScaler("cuda", enabled=False)
for x, y in loader:
    optimizer.zero_grad()
    scaler.scale(criterion(model(x), y)).backward()
    scaler.step(optimizer)
    scaler.update()
"""
    )
    assert not any("scaler" in event.attrs for event in tape.events)


ACCELERATE = """
from accelerate import Accelerator
accelerator = Accelerator(gradient_accumulation_steps=2)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 10)
{prepare}
for x, y in loader:
    with accelerator.accumulate(model):
        loss = criterion(model(x), y)
        accelerator.backward(loss)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
"""


def test_what_accelerate_prepared_acts_at_the_end_of_its_window_only():
    prepare = "model, optimizer, scheduler, loader = accelerator.prepare(model, optimizer, scheduler, loader)"
    tape = only_tape(BEGIN + ACCELERATE.format(prepare=prepare))
    window = "batch backward batch backward step schedule zero_grad "
    assert spelled(tape).replace("scheduler", "schedule").startswith("epoch " + window + window)
    assert all(event.attrs["scaled"] for event in tape.of_kind(EventKind.BACKWARD))


def test_a_schedule_that_was_not_prepared_ticks_every_micro_batch():
    prepare = "model, optimizer, loader = accelerator.prepare(model, optimizer, loader)"
    tape = only_tape(BEGIN + ACCELERATE.format(prepare=prepare))
    assert tape.count(EventKind.SCHEDULE) == tape.count(EventKind.BATCH)


@pytest.mark.parametrize(
    ("length", "unit"),
    [
        ("epochs", "epoch"),
        ("epochs * len(loader)", "batch"),
        ("epochs * (len(loader) // accumulation_steps)", "update"),
        ("epochs * len(loader) // window", None),
        ("total", None),
    ],
)
def test_the_length_of_a_schedule_has_the_unit_it_was_computed_in(length: str, unit: str | None):
    tape = only_tape(
        BEGIN
        + f"""
from torch.optim.lr_scheduler import CosineAnnealingLR
epochs = args.epochs
schedule = CosineAnnealingLR(optimizer, T_max={length})
for epoch in range(epochs):
    for x, y in loader:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()
    schedule.step()
"""
    )
    (schedule,) = (actor for actor in tape.actors.values() if actor.kind is ActorKind.SCHEDULE)
    assert schedule.attrs["planned_unit"] == unit
    assert schedule.attrs["torch"] is True


@pytest.mark.parametrize(
    ("clear", "fate"), [("optimizer.zero_grad()", "is never stepped"), ("pass", "joins the first")]
)
def test_what_the_end_of_an_epoch_leaves_is_told_by_what_becomes_of_it(clear: str, fate: str):
    source = f"""
for epoch in range(9):
    {clear}
    for i, (x, y) in enumerate(loader):
        (criterion(model(x), y) / k).backward()
        if (i + 1) % k == 0:
            optimizer.step()
            optimizer.zero_grad()
"""
    (finding,) = judge([observe_source(BEGIN + source, "train.py")])
    assert finding.code == "GC108"
    assert fate in finding.message
