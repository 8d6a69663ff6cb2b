"""A schedule is advanced in the unit that its length was counted in: epochs, batches, one pass."""

from __future__ import annotations

import pytest

from tests.static.reading import TORCH, told

DECAYS = """
def run(model, loader, args):
    {epochs}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.{schedule}
    for epoch in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            F.mse_loss(model(x), y).backward()
            optimizer.step()
            {per_batch}
        {per_epoch}
"""


@pytest.mark.parametrize("epochs", ["epochs = 90", "epochs = args.epochs", "epochs = int(n // len(loader))"])
@pytest.mark.parametrize(
    "schedule",
    [
        "StepLR(optimizer, epochs // 3)",
        "StepLR(optimizer, step_size=epochs // 2, gamma=0.5)",
        "MultiStepLR(optimizer, milestones=[epochs // 2, 3 * epochs // 4])",
    ],
)
def test_a_decay_after_so_many_epochs_is_advanced_by_epochs(epochs: str, schedule: str) -> None:
    faulty = DECAYS.format(epochs=epochs, schedule=schedule, per_batch="schedule.step()", per_epoch="pass")
    assert {code for code, _ in told(TORCH + faulty)} == {"GC113"}
    right = DECAYS.format(epochs=epochs, schedule=schedule, per_batch="pass", per_epoch="schedule.step()")
    assert told(TORCH + right) == set()


@pytest.mark.parametrize(
    "schedule",
    [
        "StepLR(optimizer, 30)",
        "StepLR(optimizer, epochs // 3 * len(loader))",
        "StepLR(optimizer, args.decay_steps)",
        "MultiStepLR(optimizer, milestones=[epochs * len(loader) // 2])",
        "MultiStepLR(optimizer, milestones=args.milestones)",
    ],
)
def test_a_decay_in_batches_or_in_nobody_knows_what_may_be_advanced_by_batches(schedule: str) -> None:
    source = DECAYS.format(
        epochs="epochs = args.epochs", schedule=schedule, per_batch="schedule.step()", per_epoch="pass"
    )
    assert told(TORCH + source) == set()


@pytest.mark.parametrize(
    ("epochs", "schedule", "tick"),
    [
        ("epochs = args.epochs", "StepLR(optimizer, epochs // 3)", "schedule.step(epoch)"),
        ("epochs = args.epochs", "MultiStepLR(optimizer, [epochs // 2])", "schedule.step(epoch + 0.5)"),
        ("max_epochs = args.epochs * len(loader)", "StepLR(optimizer, max_epochs // 2)", "schedule.step()"),
        ("n = args.steps", "MultiStepLR(optimizer, [n, args.epochs])", "schedule.step()"),
        ("n = 1", "CosineAnnealingLR(optimizer, T_max=len(loader))", "schedule.step()"),
    ],
)
def test_what_is_told_how_far_it_is_or_made_of_batches_is_right(
    epochs: str, schedule: str, tick: str
) -> None:
    source = DECAYS.format(epochs=epochs, schedule=schedule, per_batch=tick, per_epoch="pass")
    assert told(TORCH + source.replace("range(epochs)", "range(args.epochs)")) == set()


@pytest.mark.parametrize("length", ["T_max=len(train_loader)", "len(train_loader), 1e-6"])
@pytest.mark.parametrize("tick", ["schedule.step()", "if epoch >= 10: schedule.step()"])
def test_the_length_of_one_pass_is_not_advanced_once_in_each(length: str, tick: str) -> None:
    schedule = f"CosineAnnealingLR(optimizer, {length})"
    passes = DECAYS.replace("loader", "train_loader")
    source = passes.format(epochs="epochs = args.epochs", schedule=schedule, per_batch="pass", per_epoch=tick)
    assert {code for code, _ in told(TORCH + source)} == {"GC113"}
    anew = passes.format(epochs="epochs = 9", schedule=schedule, per_batch=tick, per_epoch="pass")
    assert told(TORCH + anew) == set()


@pytest.mark.parametrize("length", ["len(task_loader)", "len(tasks)", "epochs", "args.t_max"])
def test_what_is_gone_over_once_may_be_of_anything(length: str) -> None:
    source = DECAYS.format(
        epochs="epochs = args.epochs",
        schedule=f"CosineAnnealingLR(optimizer, T_max={length})",
        per_batch="pass",
        per_epoch="schedule.step()",
    )
    assert told(TORCH + source) == set()


CHOSEN = """
def made(args, optimizer):
    per_batch = False
    if args.schedule == "cosine":
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs)
    elif args.schedule == "cyclic":
        schedule = torch.optim.lr_scheduler.CyclicLR(optimizer, 0.01, 0.1)
        per_batch = True
    else:
        raise ValueError(args.schedule)
    return schedule, per_batch

def run(model, loader, args):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule, per_batch = made(args, optimizer)
    for epoch in range(args.epochs):
        for x, y in loader:
            optimizer.zero_grad()
            F.mse_loss(model(x), y).backward()
            optimizer.step()
            {per_batch}
        {per_epoch}
"""


def test_a_flag_that_goes_with_the_kind_of_schedule_says_when_to_advance_it() -> None:
    source = CHOSEN.format(
        per_batch="if per_batch: schedule.step()", per_epoch="if not per_batch: schedule.step()"
    )
    assert told(TORCH + source) == set()
    always = CHOSEN.format(per_batch="schedule.step()", per_epoch="pass")
    assert {code for code, _ in told(TORCH + always)} == {"GC113"}


BY_KIND = """
from torch.optim.lr_scheduler import CosineAnnealingLR, OneCycleLR, StepLR

def run(model, loader, args):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    if args.once:
        schedule = OneCycleLR(optimizer, 0.1, total_steps=args.epochs * len(loader))
    else:
        schedule = CosineAnnealingLR(optimizer, args.epochs)
    by_batch = {asked}
    for epoch in range(args.epochs):
        for x, y in loader:
            optimizer.zero_grad()
            F.mse_loss(model(x), y).backward()
            optimizer.step()
            if {batch}:
                schedule.step()
        if {epoch}:
            schedule.step()
"""


@pytest.mark.parametrize(
    "asked",
    ["isinstance(schedule, OneCycleLR)", "isinstance(schedule, (OneCycleLR, StepLR))"],
)
def test_a_schedule_is_advanced_as_its_kind_wants(asked: str) -> None:
    right = BY_KIND.format(asked=asked, batch="by_batch", epoch="not by_batch")
    assert told(TORCH + right) == set()
    wrong = BY_KIND.format(asked=asked, batch="not by_batch", epoch="by_batch")
    assert {code for code, _ in told(TORCH + wrong)} == {"GC113"}


OF_PARTS = """
def run(model, loader, args):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    {lengths}
    warm = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.1, total_iters={warm})
    decay = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max={decay})
    schedule = torch.optim.lr_scheduler.SequentialLR(optimizer, [warm, decay], milestones=[{warm}])
    for epoch in range(args.epochs):
        for x, y in loader:
            optimizer.zero_grad()
            F.mse_loss(model(x), y).backward()
            optimizer.step()
            {per_batch}
        {per_epoch}
"""
BY_EPOCHS = {"lengths": "pass", "warm": "args.warmup_epochs", "decay": "args.epochs - args.warmup_epochs"}
BY_BATCHES = {"lengths": "total = args.epochs * len(loader)", "warm": "500", "decay": "total - 500"}
PER_BATCH = {"per_batch": "schedule.step()", "per_epoch": "pass"}
PER_EPOCH = {"per_batch": "pass", "per_epoch": "schedule.step()"}


@pytest.mark.parametrize(
    ("lengths", "pace", "codes"),
    [
        (BY_EPOCHS, PER_BATCH, {"GC113"}),
        (BY_EPOCHS, PER_EPOCH, set()),
        (BY_BATCHES, PER_EPOCH, {"GC113"}),
        (BY_BATCHES, PER_BATCH, set()),
        (BY_BATCHES | {"warm": "args.warmup_epochs * len(loader)"}, PER_BATCH, set()),
        (BY_BATCHES | {"warm": "args.warmup_epochs"}, PER_BATCH, set()),
        (BY_EPOCHS | {"warm": "args.warmup", "decay": "args.rest"}, PER_BATCH, set()),
    ],
)
def test_a_schedule_of_parts_is_counted_as_they_are(
    lengths: dict[str, str], pace: dict[str, str], codes: set[str]
) -> None:
    assert {code for code, _ in told(TORCH + OF_PARTS.format(**lengths, **pace))} == codes


WRITTEN_OUT = """
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
schedule = torch.optim.lr_scheduler.{schedule}
for epoch in range({epochs}):
    for x, y in train_loader:
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()
        {per_batch}
    {per_epoch}
"""


@pytest.mark.parametrize(
    ("schedule", "epochs", "pace", "codes"),
    [
        ("CosineAnnealingLR(optimizer, T_max=100)", "100", PER_BATCH, {"GC113"}),
        ("CosineAnnealingLR(optimizer, 100)", "1, 101", PER_BATCH, {"GC113"}),
        ("CosineAnnealingLR(optimizer, T_max=100)", "100", PER_EPOCH, set()),
        ("CosineAnnealingLR(optimizer, T_max=100)", "30", PER_BATCH, set()),
        ("LinearLR(optimizer, total_iters=10)", "10", PER_BATCH, set()),
        ("StepLR(optimizer, 10)", "10", PER_BATCH, set()),
    ],
)
def test_as_many_as_there_are_epochs_are_epochs(
    schedule: str, epochs: str, pace: dict[str, str], codes: set[str]
) -> None:
    source = TORCH + WRITTEN_OUT.format(schedule=schedule, epochs=epochs, **pace)
    assert {code for code, _ in told(source)} == codes


FACTOR = """
import math

def run(model, loader, args):
    {epochs}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    {factor}
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lr_lambda=factor)
    for epoch in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            F.mse_loss(model(x), y).backward()
            optimizer.step()
            {per_batch}
        {per_epoch}
"""
OF_EPOCHS = [
    "factor = lambda x: (1 - x / epochs) * 0.9 + 0.1",
    "factor = lambda epoch: (1 + math.cos(epoch * math.pi / epochs)) / 2",
    "def factor(epoch):\n        return 0.5 * (1 + math.cos(math.pi * epoch / args.epochs))",
]
OF_OTHERS = [
    "factor = lambda step: 1 - step / (epochs * len(loader))",
    "factor = lambda step: 1 - step / len(loader) / epochs",
    "factor = lambda step: 1 - step / args.steps",
    "factor = lambda epoch: 0.95 ** epoch",
    "factor = lambda step: min(1, step / args.warmup_steps) * (1 - step / epochs)",
    "from factors import factor",
]


@pytest.mark.parametrize("epochs", ["epochs = args.epochs", "epochs = 90"])
@pytest.mark.parametrize("factor", OF_EPOCHS)
def test_a_factor_of_the_epochs_is_advanced_by_epochs(factor: str, epochs: str) -> None:
    faulty = FACTOR.format(epochs=epochs, factor=factor, **PER_BATCH)
    assert {code for code, _ in told(TORCH + faulty)} == {"GC113"}
    assert told(TORCH + FACTOR.format(epochs=epochs, factor=factor, **PER_EPOCH)) == set()


@pytest.mark.parametrize("factor", OF_OTHERS)
def test_a_factor_of_anything_else_may_be_advanced_by_batches(factor: str) -> None:
    assert told(TORCH + FACTOR.format(epochs="epochs = args.epochs", factor=factor, **PER_BATCH)) == set()


def test_what_is_called_epochs_may_be_made_of_batches() -> None:
    source = FACTOR.format(epochs="epochs = args.epochs * len(loader)", factor=OF_EPOCHS[0], **PER_BATCH)
    assert told(TORCH + source) == set()
