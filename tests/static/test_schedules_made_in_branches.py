"""Schedules that one of several branches makes, each of them out of sight or in it."""

from __future__ import annotations

from tests.static.reading import TORCH, told

PROGRAM = """
FUNCTIONS = {}

def by_name(name, optimizer, warmup=0, steps=0):
    if name == "one_cycle":
        return torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=steps)
    function = FUNCTIONS[name]
    if name == "constant":
        return function(optimizer)
    if name == "warm":
        return function(optimizer, warmup=warmup)
    return function(optimizer, warmup=warmup, steps=steps)

class Trainer:
    def __init__(self, name, model, loader):
        self.model, self.loader = model, loader
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        self.lr_scheduler = by_name(name, self.optimizer)

    def train(self):
        for x, y in self.loader:
            self.optimizer.zero_grad()
            F.cross_entropy(self.model(x), y).backward()
            self.optimizer.step()
            self.lr_scheduler.step()
"""


def test_several_that_are_known_by_one_name_are_one() -> None:
    assert told(TORCH + PROGRAM) == set()
