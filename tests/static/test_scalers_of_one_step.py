"""A scaler that two optimizers share is built before their loop, and one that is built in it starts anew."""

from __future__ import annotations

from tests.static.reading import TORCH, marked, told

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


SWITCHED = """
from ignite.engine import Engine
from torch.cuda.amp import GradScaler

def create(config, model, optimizer, criterion):
    {before}

    def update(engine, batch):
        x, y = batch
        {inside}
        optimizer.zero_grad()
        if config.mixed:
            with torch.cuda.amp.autocast():
                loss = criterion(model(x), y)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        else:
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
        return loss.item()

    return Engine(update)
"""


def test_a_setting_that_leaves_the_scaler_aside_says_nothing_of_where_it_is_built() -> None:
    anew = TORCH + SWITCHED.format(before="pass", inside="scaler = GradScaler()  # GC504")
    assert told(anew) == marked(anew) != set()
    assert told(TORCH + SWITCHED.format(before="scaler = GradScaler()", inside="pass")) == set()
