"""Schedules that are one of several, that others prepared or made, or that one phase alone advances."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from gradclinic.engine import judge
from gradclinic.static import observe_source
from tests.static.reading import TORCH, marked, told

A_SCHEDULE_AFTER_A_CALL_THAT_PREPARES = """
from privacy import Engine

def run(model, loader, epochs):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs * len(loader))
    engine = Engine(model, sample_size=100)
    engine.attach(optimizer)
    for epoch in range(epochs):
        for x, y in loader:
            F.mse_loss(model(x), y).backward()
            schedule.step()  # GC112
            optimizer.step()
            optimizer.zero_grad()
"""

A_SCHEDULE_AFTER_A_CALL_THAT_TRAINS = """
from warming import warm_up_train

def run(model, loader, epochs):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, epochs)
    warm_up_train(model, optimizer)
    for epoch in range(epochs):
        schedule.step()
        for x, y in loader:
            F.mse_loss(model(x), y).backward()
            optimizer.step()
            optimizer.zero_grad()
"""

ONE_OF_TWO_SCHEDULES = """
class Fixed(torch.optim.lr_scheduler.LRScheduler):
    pass

def run(model, loader, epochs, fixed):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    if fixed:
        schedule = Fixed(optimizer)
    else:
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 50)
    for epoch in range(epochs):
        schedule.step()  # GC112
        for x, y in loader:
            optimizer.zero_grad()
            F.mse_loss(model(x), y).backward()
            optimizer.step()
"""

A_SECOND_PHASE_WITHOUT_THE_SCHEDULE = """
def first_phase(model, loader, optimizer, schedule):
    schedule.step()  # GC112
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()

def second_phase(model, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        model.reward(x).mean().backward()
        optimizer.step()

def run(model, loader, epochs):
    optimizer = torch.optim.Adam(model.parameters())
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    second, patience = False, 0
    for epoch in range(epochs):
        if not second:
            first_phase(model, loader, optimizer, schedule)
        else:
            second_phase(model, loader, optimizer)
        patience = judge(model, patience)
        if patience == 5 and not second:
            second = True
            optimizer = torch.optim.Adam(model.parameters(), lr=1e-6)
"""

A_SCHEDULE_MOVED_ONCE_ON_RESUME = """
def run(model, loader, epochs, resumed):
    optimizer = torch.optim.Adam(model.parameters())
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    if resumed:
        schedule.step()
    for epoch in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        schedule.step()
"""

ONE_OF_TWO_LENGTHS = """
def run(model, loader, args):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    if args.schedule == "cosine":
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs * len(loader))
    elif args.schedule == "steps":
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 30)
    else:
        schedule = None
    for epoch in range(args.epochs):
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        if schedule is not None:
            schedule.step()  # GC113
"""

EACH_OF_TWO_LENGTHS_AT_ITS_PACE = """
def run(model, loader, args):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    if args.schedule == "cosine":
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs * len(loader))
    else:
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs)
    for epoch in range(args.epochs):
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
            if args.schedule == "cosine":
                schedule.step()
        if args.schedule != "cosine":
            schedule.step()
"""

A_LENGTH_IN_BATCHES_FOR_WINDOWS = """
def run(model, loader, epochs, accumulation=8):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=len(loader) * epochs)
    for epoch in range(epochs):
        for index, (x, y) in enumerate(loader):
            (F.cross_entropy(model(x), y) / accumulation).backward()
            if (index + 1) % accumulation == 0 or index + 1 == len(loader):
                optimizer.step()
                schedule.step()  # GC113
                optimizer.zero_grad()
"""

A_LENGTH_IN_UPDATES_FOR_WINDOWS = A_LENGTH_IN_BATCHES_FOR_WINDOWS.replace(
    "len(loader) * epochs", "len(loader) // accumulation * epochs + epochs"
).replace("  # GC113", "")

A_SCHEDULE_MADE_BY_WHAT_A_STAR_BRINGS = """
from project.utils import *

def run(model, loader, args):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = get_schedule_with_warmup(optimizer, args.warmup, args.total)
    for index, (x, y) in enumerate(loader):
        F.cross_entropy(model(x), y).backward()  # GC106
        if (index + 1) % args.accumulation_steps == 0 or index + 1 == len(loader):
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
"""

A_LENGTH_IN_BATCHES_THAT_EVERY_RANK_ADVANCES = """
from accelerate import Accelerator

def run(model, loader, epochs, args):
    accelerator = Accelerator(gradient_accumulation_steps=args.accumulation)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=len(loader) * epochs)
    model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)
    for epoch in range(epochs):
        for x, y in loader:
            with accelerator.accumulate(model):
                accelerator.backward(F.cross_entropy(model(x), y))
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
"""

A_SCHEDULE_OUT_OF_SIGHT_IN_A_DEEP_LOOP = """
class Trainer:
    def __init__(self, model, optimizer, scheduler):
        self.model, self.optimizer, self.scheduler = model, optimizer, scheduler

    def run(self, rollouts, epochs):
        while True:
            batches = rollouts.next_split()
            self.scheduler.step()
            for _ in range(epochs):
                for batch in batches:
                    self.optimizer.zero_grad()
                    for part in batch.split(4):
                        (self.model(part).mean() / 4).backward()
                    self.optimizer.step()
"""

BATCHES_TAKEN_ONE_BY_ONE = """
def run(model, loader, epochs):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, total_iters=epochs)
    for epoch in range(epochs):
        batches = iter(loader)
        for _ in range(len(loader)):
            x, y = next(batches)
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
            schedule.step()  # GC113
"""

BATCHES_TAKEN_ONE_BY_ONE_AND_COUNTED = BATCHES_TAKEN_ONE_BY_ONE.replace(
    "total_iters=epochs", "total_iters=epochs * len(loader)"
).replace("  # GC113", "")


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(BATCHES_TAKEN_ONE_BY_ONE, id="batches are taken one by one"),
        pytest.param(A_SCHEDULE_AFTER_A_CALL_THAT_PREPARES, id="a call prepared the optimizer"),
        pytest.param(ONE_OF_TWO_SCHEDULES, id="another schedule in its place is not known"),
        pytest.param(A_SECOND_PHASE_WITHOUT_THE_SCHEDULE, id="a second phase has no schedule"),
        pytest.param(ONE_OF_TWO_LENGTHS, id="one of two schedules has a length"),
        pytest.param(A_LENGTH_IN_BATCHES_FOR_WINDOWS, id="updates are fewer than batches"),
        pytest.param(A_SCHEDULE_MADE_BY_WHAT_A_STAR_BRINGS, id="a function makes the schedule"),
    ],
)
def test_a_schedule_at_the_wrong_place_is_seen(source: str) -> None:
    text = dedent(TORCH + source)
    assert told(text) == marked(text)


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(A_SCHEDULE_OUT_OF_SIGHT_IN_A_DEEP_LOOP, id="it may set the rate of what follows"),
        pytest.param(A_LENGTH_IN_BATCHES_THAT_EVERY_RANK_ADVANCES, id="every rank advances it"),
        pytest.param(BATCHES_TAKEN_ONE_BY_ONE_AND_COUNTED, id="so they are, and the length counts them"),
        pytest.param(A_SCHEDULE_AFTER_A_CALL_THAT_TRAINS, id="a call before may have trained"),
        pytest.param(A_SCHEDULE_MOVED_ONCE_ON_RESUME, id="a schedule is moved once, before the training"),
        pytest.param(EACH_OF_TWO_LENGTHS_AT_ITS_PACE, id="each schedule at its pace"),
        pytest.param(A_LENGTH_IN_UPDATES_FOR_WINDOWS, id="the length is that of the updates"),
    ],
)
def test_a_schedule_at_its_place_is_left_alone(source: str) -> None:
    assert told(dedent(TORCH + source)) == set()


OF_TORCHS_NAME = """
from rates import ConstantLR

def run(model, loader, args):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = ConstantLR(optimizer)
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        schedule.step()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("rates", "found"),
    [
        (None, set()),
        ("class ConstantLR(Before):\n    pass\n", set()),
        ("from torch.optim.lr_scheduler import ConstantLR\n", {"GC112"}),
    ],
)
def test_a_class_of_the_project_may_have_the_name_of_torchs(
    rates: str | None, found: set[str], tmp_path: Path
) -> None:
    if rates is not None:
        (tmp_path / "rates.py").write_text(rates)
    judged = judge([observe_source(TORCH + OF_TORCHS_NAME, str(tmp_path / "train.py"))])
    assert {finding.code for finding in judged} == found


HANDED_TO_A_LOOP_OF_KNOWN_LENGTH = """
def train(model, loader, optimizer, schedule, epochs):
    for epoch in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        if epoch > 5:
            schedule.step()

model = nn.Linear(3, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
decay = torch.optim.lr_scheduler.StepLR(optimizer, 100)  # GC114
train(model, loader, optimizer, decay, 25)
"""


@pytest.mark.parametrize("waits", ["epoch > 5", "epoch + 1 >= 10", "1 < epoch", "not epoch < 24"])
def test_what_a_long_loop_comes_to_later_happens(waits: str) -> None:
    source = TORCH + HANDED_TO_A_LOOP_OF_KNOWN_LENGTH.replace("epoch > 5", waits)
    assert told(source) == set()


@pytest.mark.parametrize("waits", ["epoch > 24", "epoch - 1 >= 24", "epoch < 0"])
def test_what_it_never_comes_to_does_not(waits: str) -> None:
    source = TORCH + HANDED_TO_A_LOOP_OF_KNOWN_LENGTH.replace("epoch > 5", waits)
    assert told(source) == marked(source)


A_CONSTANT_RATE = """
from transformers import get_constant_schedule, get_linear_schedule_with_warmup

def run(model, loader, epochs):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    schedule = SCHEDULE
    for epoch in range(epochs):
        for x, y in loader:
            F.mse_loss(model(x), y).backward()
            optimizer.step()
            optimizer.zero_grad()
        print(epoch, schedule.get_last_lr()[0])
"""


@pytest.mark.parametrize(
    ("schedule", "codes"),
    [
        ("get_constant_schedule(optimizer)", set()),
        ("torch.optim.lr_scheduler.LambdaLR(optimizer, lambda _: 1.0)", set()),
        ("torch.optim.lr_scheduler.LambdaLR(optimizer, lr_lambda=lambda _: 1.0)", set()),
        ("torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.9**step)", {"GC114"}),
        ("get_linear_schedule_with_warmup(optimizer, 10, 100)", {"GC114"}),
    ],
)
def test_a_schedule_that_keeps_the_rate_need_not_be_advanced(schedule: str, codes: set[str]) -> None:
    assert {code for code, _ in told(TORCH + A_CONSTANT_RATE.replace("SCHEDULE", schedule))} == codes


A_SWEEP = """
def FUNCTION(model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-7)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 1.2)
    rates, losses = [], []
    for x, y in loader:
        schedule.step()
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        rates.append(optimizer.param_groups[0]["lr"])
        losses.append(loss.item())
    return rates, losses
"""


@pytest.mark.parametrize(
    ("function", "codes"),
    [("lr_find", set()), ("find_learning_rate", set()), ("train", {"GC112"}), ("train_lr_range", {"GC112"})],
)
def test_a_sweep_over_rates_begins_with_any_of_them(function: str, codes: set[str]) -> None:
    assert {code for code, _ in told(TORCH + A_SWEEP.replace("FUNCTION", function))} == codes
