"""Schedules that one of several branches makes, each of them out of sight or in it."""

from __future__ import annotations

from tests.static.reading import TORCH, marked, told

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


TWO_BY_ONE_HELPER = """
class Trainer:
    def __init__(self, model, judge, args):
        self.model, self.judge = model, judge
        self.scaler = torch.amp.GradScaler("cuda")
        self.first = self.make(args, model.parameters())
        self.second = self.make(args, judge.parameters())
        self.optimizers = [self.first, self.second]

    def make(self, args, parameters):
        optimizer = None
        if args.kind == "adam":
            optimizer = torch.optim.Adam(parameters)
        elif args.kind == "sgd":
            optimizer = torch.optim.SGD(parameters, lr=0.1)
        else:
            optimizer = torch.optim.RMSprop(parameters)
        return optimizer

    def train(self, loader):
        for x, y in loader:
            with torch.autocast("cuda"):
                loss = F.mse_loss(self.judge(self.model(x)), y)
            self.scaler.scale(loss).backward()
            for optimizer in {over}:
                self.scaler.unscale_(optimizer){mark}
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            for optimizer in self.optimizers:
                self.scaler.step(optimizer)
            self.scaler.update()
            for optimizer in self.optimizers:
                optimizer.zero_grad()
"""


def test_two_that_one_helper_chooses_are_two() -> None:
    right = TWO_BY_ONE_HELPER.format(over="self.optimizers", mark="")
    assert told(TORCH + right) == set()
    twice = TORCH + TWO_BY_ONE_HELPER.format(over="[self.first, self.first]", mark="  # GC502")
    assert told(twice) == marked(twice)
