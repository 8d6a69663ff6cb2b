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
