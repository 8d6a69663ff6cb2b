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
