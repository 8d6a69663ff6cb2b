"""What `get_lr()` gives: the next rate of torch's schedules, anything of those that a project writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradclinic.config import Config
from gradclinic.findings import Finding
from gradclinic.linting import lint
from gradclinic.linting.examine import examine

OWN = """
class _LRScheduler(object):
    def __init__(self, optimizer):
        self.optimizer = optimizer
        self.base_lrs = [group["lr"] for group in optimizer.param_groups]
        self.last_epoch = -1

    def step(self):
        self.last_epoch += 1
        for group, lr in zip(self.optimizer.param_groups, self.get_lr()):
            group["lr"] = lr

class StepLR(_LRScheduler):
    def get_lr(self):
        return [lr * 0.9 ** self.last_epoch for lr in self.base_lrs]
"""
TORCHS = """
from torch.optim import lr_scheduler

class StepLR(lr_scheduler.StepLR):
    pass
"""
TRAIN = """
import torch
{imported}

def run(model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = {made}(optimizer)
    for epoch in range(9):
        for x, y in loader:
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
        scheduler.step()
        print(scheduler.get_lr()[0])
"""
IMPORTS = [
    ("import schedules as L", "L.StepLR"),
    ("import schedules", "schedules.StepLR"),
    ("from schedules import StepLR", "StepLR"),
    ("from schedules import *", "StepLR"),
]


def found(folder: Path, schedules: str, source: str) -> tuple[Finding, ...]:
    (folder / "setup.py").touch()
    (folder / "schedules.py").write_text(schedules)
    train = folder / "train.py"
    train.write_text(source)
    return examine(str(train), Config()).findings


def codes(folder: Path, schedules: str, source: str) -> list[str]:
    return [finding.code for finding in found(folder, schedules, source)]


@pytest.mark.parametrize(("imported", "made"), IMPORTS)
def test_a_schedule_of_the_project_gives_what_it_likes(tmp_path: Path, imported: str, made: str) -> None:
    assert codes(tmp_path, OWN, TRAIN.format(imported=imported, made=made)) == []


def test_one_that_the_file_itself_defines_does_too(tmp_path: Path) -> None:
    assert codes(tmp_path, "", TRAIN.format(imported=OWN, made="StepLR")) == []


@pytest.mark.parametrize(("imported", "made"), IMPORTS)
def test_one_on_top_of_torchs_gives_the_next_rate(tmp_path: Path, imported: str, made: str) -> None:
    assert codes(tmp_path, TORCHS, TRAIN.format(imported=imported, made=made)) == ["GC308"]


@pytest.mark.parametrize("made", ["torch.optim.lr_scheduler.StepLR", "lr_scheduler.StepLR"])
def test_torchs_own_does(tmp_path: Path, made: str) -> None:
    source = TRAIN.format(imported="from torch.optim import lr_scheduler", made=made)
    assert codes(tmp_path, OWN, source.replace("(optimizer)", "(optimizer, 3)")) == ["GC308"]


GIVEN = """
import torch
from torch.optim.lr_scheduler import LambdaLR, StepLR

def report(scheduler: {kind}):
    print(scheduler.get_lr()[0])
"""


@pytest.mark.parametrize(("kind", "told"), [("LambdaLR", []), ("StepLR", ["GC308"])])
def test_an_annotation_says_which_it_is(tmp_path: Path, kind: str, told: list[str]) -> None:
    assert codes(tmp_path, "", GIVEN.format(kind=kind)) == told


ANNOTATED = """
import torch

def run(optimizer):
    scheduler: torch.optim.lr_scheduler.LRScheduler = torch.optim.lr_scheduler.{kind}(optimizer, lr_of)
    print(scheduler.get_lr()[0])
"""


@pytest.mark.parametrize(("kind", "told"), [("LambdaLR", []), ("StepLR", ["GC308"])])
def test_what_is_built_says_it_too(tmp_path: Path, kind: str, told: list[str]) -> None:
    assert codes(tmp_path, "", ANNOTATED.format(kind=kind)) == told


TOLD_BY_NAME = """
import torch

def fit(model, loader, optimizer, scheduler):
    for x, y in loader:
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    scheduler.step()
    print(scheduler.get_lr()[0])
"""
OF_ITS_OWN = """
import torch

class WarmUp(torch.optim.lr_scheduler.LRScheduler):
    def get_lr(self):
        return [lr * min(1, self.last_epoch / 10) for lr in self.base_lrs]
"""


@pytest.mark.parametrize(
    ("schedules", "wrong"),
    [
        ("", "is not"),
        ("make = lambda o: torch.optim.lr_scheduler.StepLR(o, 3)", "is not"),
        (OF_ITS_OWN, "is for some schedules only"),
        ("make = lambda o: torch.optim.lr_scheduler.LambdaLR(o, f)", "is for some schedules only"),
        ("make = lambda o: get_cosine_schedule_with_warmup(o, 10, 100)", "is for some schedules only"),
    ],
)
def test_what_is_given_may_be_any_that_the_project_has(tmp_path: Path, schedules: str, wrong: str) -> None:
    (told,) = found(tmp_path, schedules, TOLD_BY_NAME)
    assert told.message == f"scheduler.get_lr() {wrong} the current learning rate"


def test_what_a_project_says_is_looked_up_anew_for_each_run(tmp_path: Path) -> None:
    (tmp_path / "setup.py").touch()
    train = tmp_path / "train.py"
    train.write_text(TOLD_BY_NAME)
    (before,) = lint([str(train)], Config()).findings
    (tmp_path / "schedules.py").write_text(OF_ITS_OWN)
    (after,) = lint([str(train)], Config()).findings
    assert (before.confidence, after.confidence) == (0.9, 0.5)
