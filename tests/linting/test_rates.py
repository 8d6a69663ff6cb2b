"""`get_lr()` asked for the rate of now: wrong of a schedule that goes on from its last rate only."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradclinic.config import Config
from gradclinic.linting import lint

LOOP = """\
import torch
from torch.optim import lr_scheduler
import transformers
from transformers import get_linear_schedule_with_warmup
from solver import make_scheduler

def local_scheduler(optimizer):
    return lr_scheduler.LambdaLR(optimizer, lambda n: 0.9**n)

scheduler = {made}
for x, y in loader:
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
    scheduler.step()
    print(scheduler.get_lr()[0])
"""
SOLVER = """\
from torch.optim import lr_scheduler

def make_scheduler(optimizer, config):
    return {made}
"""


def told(project: Path, made: str, elsewhere: str = "") -> bool:
    (project / "pyproject.toml").touch()
    (project / "train.py").write_text(LOOP.format(made=made))
    if elsewhere:
        (project / "solver.py").write_text(SOLVER.format(made=elsewhere))
    diagnosis = lint([str(project / "train.py")], Config())
    assert not diagnosis.problems
    return "GC308" in {finding.code for finding in diagnosis.findings}


@pytest.mark.parametrize(
    ("made", "wrong"),
    [
        ("lr_scheduler.StepLR(optimizer, 3)", True),
        ("lr_scheduler.CosineAnnealingLR(optimizer, 3)", True),
        ("lr_scheduler.LambdaLR(optimizer, lambda n: 0.9**n)", False),
        ("lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=9)", False),
        ("lr_scheduler.CyclicLR(optimizer, 0.01, 0.1)", False),
        ("lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 3)", False),
        ("get_linear_schedule_with_warmup(optimizer, 3, 9)", False),
        ("transformers.get_linear_schedule_with_warmup(optimizer, 3, 9)", False),
        ("build_scheduler(optimizer)", True),
        ("local_scheduler(optimizer)", False),
    ],
)
def test_schedules_that_compute_each_rate_from_the_first_are_asked_rightly(
    tmp_path: Path, made: str, wrong: bool
) -> None:
    assert told(tmp_path, made) is wrong


@pytest.mark.parametrize(
    ("elsewhere", "wrong"),
    [
        ("lr_scheduler.LambdaLR(optimizer, lambda n: 0.9**n)", False),
        ("lr_scheduler.StepLR(optimizer, 3)", True),
        ("getattr(lr_scheduler, config.name)(optimizer)", True),
        ("lr_scheduler.StepLR(optimizer, 3) if config else lr_scheduler.ExponentialLR(optimizer, 1)", True),
        ("lr_scheduler.StepLR(optimizer, 3) if config else lr_scheduler.OneCycleLR(optimizer, 1)", False),
    ],
)
def test_another_file_says_which_schedules_it_makes(tmp_path: Path, elsewhere: str, wrong: bool) -> None:
    assert told(tmp_path, "make_scheduler(optimizer, config)", elsewhere) is wrong
    loop = LOOP.replace("scheduler = {made}", "optimizer, scheduler = {made}", 1)
    (tmp_path / "train.py").write_text(loop.format(made="make_scheduler(model, config)"))
    found = {finding.code for finding in lint([str(tmp_path / "train.py")], Config()).findings}
    assert ("GC308" in found) is wrong


def test_a_schedule_of_the_project_itself_and_what_is_none_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "solver.py").write_text(
        "from torch.optim.lr_scheduler import ReduceLROnPlateau, StepLR\n\n"
        "class WarmupScheduler(ReduceLROnPlateau):\n    def get_lr(self):\n        return [0.1]\n\n"
        "def make_noise_schedule(n):\n    return range(n)\n\n"
        "def make_scheduler(optimizer):\n    return StepLR(optimizer, 3)\n"
    )
    assert not told(tmp_path, "WarmupScheduler(optimizer)")
    loop = LOOP.format(made="make_noise_schedule(9)").replace("make_scheduler", "make_noise_schedule")
    (tmp_path / "train.py").write_text(
        loop.replace("print(scheduler.get_lr()[0])", "writer.add_scalar('lr', args.lr)")
    )
    assert not lint([str(tmp_path / "train.py")], Config()).findings
