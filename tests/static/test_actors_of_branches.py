"""Optimizers and schedules that several branches make, and that are one wherever they are spoken of."""

from __future__ import annotations

from tests.static.reading import TORCH, marked, told

MADE_BY_NAME = """
from transformers import get_cosine_schedule_with_warmup
from schedules import KINDS

def make(kind, optimizer, settings):
    if kind == "cosine":
        return get_cosine_schedule_with_warmup(optimizer, 10, 100)
    maker = KINDS[kind]
    if kind == "plain":
        return maker(**settings)
    return maker(total=100, **settings)

class Trainer:
    def __init__(self, cfg, model, loader):
        self.model, self.loader = model, loader
        self.optimizer = cfg.train.optimizer(model.parameters())
        self.scheduler = make(cfg.train.kind, self.optimizer, cfg.train.settings)

    def fit(self):
        for epoch in range(10):
            for x, y in self.loader:
                self.optimizer.zero_grad()
                loss = F.mse_loss(self.model(x), y)
                loss.backward()
                self.optimizer.step()
                self.scheduler.step()

def main(cfg, model, loader):
    Trainer(cfg, model, loader).fit()
"""


def test_what_turned_out_to_be_one_with_another_is_still_spoken_of() -> None:
    assert told(TORCH + MADE_BY_NAME) == set()


CHOSEN = """
def make(kind, optimizer):
    if kind == "step":
        return torch.optim.lr_scheduler.StepLR(optimizer, 10)
    return torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)

def run(kind, model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = make(kind, optimizer)
    for epoch in range(10):
        scheduler.step()  # GC112
        for x, y in loader:
            optimizer.zero_grad()
            F.mse_loss(model(x), y).backward()
            optimizer.step()
"""


def test_whichever_branch_made_it_it_is_the_one_that_is_advanced() -> None:
    assert told(TORCH + CHOSEN) == marked(TORCH + CHOSEN)
