"""Loops that are right, of which a part is where the walk does not come: of that nothing is said."""

from __future__ import annotations

import pytest

from tests.rules.scripts import codes_by_lint

HEAD = """
import copy
import math
import torch
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler
import torch.nn.functional as F
"""

A_SCHEDULE_THAT_BEGINS_LATE = """
def run(model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 10)
    for epoch in range(300):
        for x, y in loader:
            optimizer.zero_grad()
            F.mse_loss(model(x), y).backward()
            optimizer.step()
        if epoch > 150:
            schedule.step()
"""

A_STEP_BY_ANOTHER_NAME = """
def run(model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    update = optimizer.step
    for x, y in loader:
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        update()
"""

A_STEP_THAT_IS_HANDED_ON = """
def run(model, loader, engine):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 10)
    engine.on("epoch", schedule.step)
    for epoch in range(10):
        for x, y in loader:
            optimizer.zero_grad()
            F.mse_loss(model(x), y).backward()
            optimizer.step()
        engine.fire("epoch")
"""

A_SCHEDULE_IN_A_LIST_OF_ANOTHER = """
def run(model, loader, trainer):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 10)
    trainer.schedules = [schedule]
    for epoch in range(10):
        for x, y in loader:
            optimizer.zero_grad()
            F.mse_loss(model(x), y).backward()
            optimizer.step()
        trainer.end_epoch()
"""

AN_OPTIMIZER_IN_SOMEBODYS_DICT = """
def run(context, loader, model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    context["optimizer"] = optimizer
    for x, y in loader:
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        context["update"]()
"""

A_STEP_ON_LEAVING = """
class Window:
    def __init__(self, optimizer):
        self.optimizer = optimizer

    def __enter__(self):
        self.optimizer.zero_grad()

    def __exit__(self, *error):
        self.optimizer.step()


def run(model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        with Window(optimizer):
            F.mse_loss(model(x), y).backward()
"""

A_STEP_BELOW_A_YIELD = """
from contextlib import contextmanager

@contextmanager
def updating(optimizer):
    optimizer.zero_grad()
    yield
    optimizer.step()


def run(model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        with updating(optimizer):
            F.mse_loss(model(x), y).backward()
"""

A_TRACKER_THAT_OPTIMIZES = """
class Loop:
    def __init__(self, model, tracker):
        self.model, self.tracker = model, tracker
        self.optimizer = torch.optim.Adam(model.parameters())

    def run(self, loader):
        for x, y in loader:
            self.optimizer.zero_grad()
            self.tracker.optimize(F.mse_loss(self.model(x), y))
            self.optimizer.step()
"""

A_LIMIT_WITH_THE_SCALE = """
def run(model, loader, limit):
    optimizer = torch.optim.Adam(model.parameters())
    scaler = torch.amp.GradScaler()
    for x, y in loader:
        optimizer.zero_grad()
        scaler.scale(F.mse_loss(model(x), y)).backward()
        nn.utils.clip_grad_norm_(model.parameters(), limit * scaler.get_scale())
        scaler.step(optimizer)
        scaler.update()
"""

GRADIENTS_TO_LOOK_AT = """
def norms(model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    found = []
    for x, y in loader:
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        found.append(sum(p.grad.norm() for p in model.parameters()))
    return found
"""

A_COPY_ADAPTED_ONCE = """
class Adapter:
    def __init__(self, model):
        self.model = copy.deepcopy(model)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def adapt(self, x, y):
        F.mse_loss(self.model(x), y).backward()
        self.optimizer.step()
        return self.model
"""

A_PLACE_FOR_HEIRS_TO_CLEAR = """
class Agent:
    def __init__(self):
        self.net = nn.Linear(3, 1)
        self.optimizer = torch.optim.Adam(self.net.parameters())

    def before_update(self):
        pass

    def update(self, x, y):
        self.before_update()
        F.mse_loss(self.net(x), y).backward()
        self.optimizer.step()
"""

ONE_PASS_FOR_EACH_FOLD = """
def main(folds, make):
    for data in folds:
        model = make()
        loader = DataLoader(data, sampler=DistributedSampler(data))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in loader:
            optimizer.zero_grad()
            F.mse_loss(model(x), y).backward()
            optimizer.step()
"""

A_SETTING_THAT_MAY_BE_NAN = """
def run(model, loader, target=float("nan")):
    optimizer = torch.optim.Adam(model.parameters())
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    for epoch in range(10):
        for x, y in loader:
            optimizer.zero_grad()
            F.mse_loss(model(x), y).backward()
            optimizer.step()
        if math.isnan(target):
            schedule.step()
"""

TOTALS_THAT_START_OVER = """
def run(model, loader, optimizer):
    total, count = 0, 0
    for i, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        total = total + loss
        count += 1
        if i % 100 == 0:
            print((total / count).item())
            total, count = 0, 0
"""

ZEROS_PUT_IN_BY_HAND = """
def run(params, loss_of):
    optimizer = torch.optim.Adam(params, lr=0.1)
    for step in range(1000):
        loss_of(step).backward()
        optimizer.step()
        for p in params:
            if p.grad is not None:
                p.grad = p.grad.data.new().resize_as_(p.grad.data).zero_()
"""

A_NORM_OF_ITS_OWN_THAT_ONLY_MEASURES = """
from project import clip_grad_norm_

def run(model, loader):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()
        print(clip_grad_norm_(model.parameters(), 1.0, clip_grad=False))
"""

AN_ACCELERATOR_MADE_ELSEWHERE = """
from project import prepare_accelerator

def run(args, model, loader):
    accelerator = prepare_accelerator(args)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for x, y in loader:
        with accelerator.accumulate(model):
            accelerator.backward(F.mse_loss(model(x), y))
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
"""

AN_EPOCH_OF_A_GIVEN_LENGTH = """
def run(model, loader, epochs, epoch_length):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs * epoch_length)
    for x, y in loader:
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()
        schedule.step()
"""

A_BACKWARD_IN_A_FUNCTION_OF_ANY_NAME = """
from project import objective

def run(model, loader):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    for batch in loader:
        optimizer.zero_grad()
        print(objective(model, batch))
        optimizer.step()
"""

ONE_OF_TWO_OPTIMIZERS_THAT_BOTH_STEP = """
def run(model, first, second, loader, args):
    if args.first:
        main = first
    else:
        main = second
    for x, y in loader:
        first.zero_grad()
        second.zero_grad()
        F.mse_loss(model(x), y).backward()
        main.step()
"""

A_MODEL_THAT_SAMPLES_IN_EVAL_MODE_BY_ITSELF = """
def run(model, loader):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    for epoch in range(10):
        model.train()
        for x, y in loader:
            optimizer.zero_grad()
            F.mse_loss(model(x), y).backward()
            optimizer.step()
        with torch.no_grad():
            for x, y in loader:
                print(F.mse_loss(model.sample(x), y))
"""

CLEARED_BY_THE_FORWARD = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)

    def forward(self, x, y):
        self.zero_grad()
        return F.cross_entropy(self.layer(x), y)

model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(10):
    for x, y in loader:
        model(x, y).backward()
        optimizer.step()
"""

GRAPHS_KEPT_IN_A_BUFFER = """
from buffers import Buffer
actor, critic = nn.Linear(4, 2), nn.Linear(6, 1)
optimizer = torch.optim.SGD(critic.parameters(), lr=0.1)
buffer = Buffer()
for episode in range(100):
    for state in states:
        buffer.append((state, actor(state)))
        seen, actions = buffer.sample(32)
        loss = F.mse_loss(critic(torch.cat([*seen, *actions])), returns)
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
"""

PROGRAMS = {name: text for name, text in list(globals().items()) if name.isupper() and name != "HEAD"}


@pytest.mark.parametrize("name", PROGRAMS)
def test_nothing_is_said(name: str) -> None:
    assert codes_by_lint(HEAD + PROGRAMS[name]) == []
