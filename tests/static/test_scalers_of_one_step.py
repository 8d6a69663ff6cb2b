"""A scaler that is built by the function that makes one step starts anew each time it is called."""

from __future__ import annotations

import pytest

from tests.static.reading import TORCH, marked, told

STEP = """
from torch.amp import GradScaler

class Trainer:
    def __init__(self, model, optimizer, judge_optimizer):
        self.model = model
        self.optimizer = optimizer
        self.judge_optimizer = judge_optimizer
        self.scaler = GradScaler("cuda")

    def training_step(self, x, y):
        {scaler}
        self.optimizer.zero_grad()
        with torch.autocast("cuda"):
            loss = F.mse_loss(self.model(x), y)
        scaler.scale(loss).backward()
        scaler.step(self.optimizer)
        scaler.update()
"""


def test_a_step_that_builds_its_own_scaler_is_told() -> None:
    source = TORCH + STEP.format(scaler='scaler = GradScaler("cuda")  # GC504')
    assert told(source) == marked(source) != set()


@pytest.mark.parametrize("scaler", ["scaler = self.scaler", "scaler = scaler_of(self.model)"])
def test_a_scaler_that_is_kept_adapts(scaler: str) -> None:
    assert told(TORCH + STEP.format(scaler=scaler)) == set()


def test_what_also_builds_the_optimizer_is_a_program_of_one_step() -> None:
    whole = """
from torch.amp import GradScaler

def overfit(model, x, y):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = GradScaler("cuda")
    optimizer.zero_grad()
    with torch.autocast("cuda"):
        loss = F.mse_loss(model(x), y)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
"""
    assert told(TORCH + whole) == set()


TWO = """
from torch.amp import GradScaler

def train(generator, judge, first, second, loader):
    {before}
    for x in loader:
        {inside}
        first.zero_grad()
        with torch.autocast("cuda"):
            loss = judge(generator(x)).mean()
        scaler.scale(loss).backward()
        scaler.step(first)
        second.zero_grad()
        with torch.autocast("cuda"):
            loss = F.softplus(judge(x)).mean()
        scaler.scale(loss).backward()
        scaler.step(second)
        scaler.update()
"""
BUILT = 'scaler = GradScaler("cuda")'


def test_one_scaler_for_two_optimizers_is_built_before_the_loop() -> None:
    anew = TORCH + TWO.format(before="pass", inside=f"{BUILT}  # GC504")
    assert told(anew) == marked(anew) != set()
    assert told(TORCH + TWO.format(before=BUILT, inside="pass")) == set()
