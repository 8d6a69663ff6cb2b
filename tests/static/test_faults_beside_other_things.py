"""Faults that stand beside something which is not their business, and the same programs put right."""

from __future__ import annotations

from textwrap import dedent

import pytest

from tests.static.reading import marked, told

HEAD = """
import torch
from torch import nn
import torch.nn.functional as F
from tqdm import tqdm
"""

SETTINGS_CALLED_LIKE_THE_FUNCTION = """
def train(config, model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=config.train.rate)
    for epoch in tqdm(range(config.train.epochs)):
        for step, batch in tqdm(enumerate(loader), total=config.train.length):
            loss = F.cross_entropy(model(batch), batch)
            loss.backward()  # GC106
            if (step + 1) % config.train.accumulate == 0:
                optimizer.step()
                optimizer.zero_grad()
"""

METERS_TOLD_OF_THE_LOSS = """
def train(model, loader, optimizer, scaler, metric_logger, args):
    for x, y in metric_logger.log_every(loader, 10):
        loss = F.cross_entropy(model(x), y)
        if args.amp:
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        else:
            loss.backward()  # GC101
            optimizer.step()
        metric_logger.update(loss=loss, rate=optimizer.param_groups[0]["lr"])
"""

RATE_FROM_A_FUNCTION = """
def train(model, loader, rate, warmup_linear):
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 5)
    for step, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        for group in optimizer.param_groups:
            group["lr"] = rate * warmup_linear(step / 100, 0.1)
        scheduler.step()  # GC112
        optimizer.step()
"""

FIXERS_CALLED_LIKE_OPTIMIZERS = """
from fixers import MassFixer

class Trainer:
    def train(self, loader, optimizer, scaler, criterion, conf):
        opt_mass = MassFixer(conf)
        for x, y in loader:
            loss = criterion(opt_mass({"x": x, "y": self.model(x)})["y"], y)
            scaler.scale(loss).backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)  # GC501
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
"""

STOPS_EARLY_TO_DEBUG = """
def train(model, loader, optimizer, args):
    for step, (x, y) in enumerate(loader):
        F.cross_entropy(model(x), y).backward()  # GC101
        optimizer.step()
        if args.debug:
            if step % 15 == 0:
                break
"""

ANOTHER_LIBRARY_BEFORE_THE_LOOP = """
import fastlib

def train(model, loader, args):
    if args.fast:
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
        fastlib.attach(model, optimizer)
    else:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 5)
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        scheduler.step()  # GC112
        optimizer.step()
"""

ONE_OF_TWO_NEVER_STEPS = """
def train(generator, critic, loader):
    optimizer_g = torch.optim.Adam(generator.parameters())
    optimizer_d = torch.optim.Adam(critic.parameters())
    for x in loader:
        fake = generator(torch.randn(8, 4))
        optimizer_d.zero_grad()
        loss_d = critic(fake.detach()).mean() - critic(x).mean()
        loss_d.backward()  # GC104
        optimizer_g.zero_grad()
        loss = -critic(generator(torch.randn(8, 4))).mean()
        loss.backward()
        optimizer_g.step()
"""

A_STEP_GIVEN_BACK = """
def make_step(model, rate):
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)

    def step(x, y):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # GC109

    return step
"""

OPTIMIZERS_OF_THE_MODELS = """
def train(G, D, loader, critic_loss):
    for x in loader:
        for turn in range(3):
            critic_loss(D(x), D(G(x).detach())).backward()  # GC101
            D.optim.step()
        G.optim.zero_grad()
        critic_loss(D(G(x)), D(x)).backward()
        G.optim.step()
"""

A_STEP_OF_A_CLASS = """
class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.score = nn.Linear(4, 1)
        self.optimizer = torch.optim.Adam(self.parameters())

    def forward(self, x):
        return self.score(x)

class Trainer:
    def __init__(self, width):
        self.critic = Critic()
        self.maker = nn.Linear(width, 4)
        self.optimizer = torch.optim.Adam(self.maker.parameters())

    def step(self, x):
        loss = self.critic(x).mean()
        loss.backward()  # GC101
        self.critic.optimizer.step()
        self.maker.zero_grad()
        self.critic(self.maker(x)).mean().backward()
        self.optimizer.step()
"""

OPTIMIZERS_LISTED_IF_THERE = """
class Optimizers:
    def __init__(self, args, encoder, unet):
        self.clip, self.every = args.clip, args.every
        self.parts = unet.parameters()
        self.optimizers = []
        first, second = make_optimizer(encoder.parameters()), make_optimizer(self.parts)
        self.optimizers.append(first) if first is not None else None
        self.optimizers.append(second) if second is not None else None
        self.scaler = torch.amp.GradScaler()

    def step(self, loss, index):
        self.scaler.scale(loss).backward()
        nn.utils.clip_grad_norm_(self.parts, self.clip)  # GC501
        for optimizer in self.optimizers:
            self.scaler.step(optimizer)
        self.scaler.update()
        for optimizer in self.optimizers:
            optimizer.zero_grad()
"""

WINDOW_KEPT_BY_A_COUNTER = """
def train(net, loader, per_step):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 5)
    for epoch in range(280):
        scheduler.step()  # GC112
        index = 0
        for x, y in loader:
            if index == 0:
                optimizer.zero_grad()
            loss = F.cross_entropy(net(x), y)
            loss /= per_step
            loss.backward()
            index += 1
            if index == per_step:
                optimizer.step()
                index = 0
"""

EPOCHS_IN_A_STATE = """
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

def main(args, model, optimizer, train_data, state):
    loader = DataLoader(train_data, sampler=DistributedSampler(train_data, shuffle=True))  # GC904
    for state["epoch"] in range(state["epoch"], args.num_epochs):
        batches = iter(loader)
        for step in range(len(loader)):
            batch = next(batches)
            optimizer.zero_grad()
            model(**batch).loss.backward()
            optimizer.step()
"""

BATCHES_OF_THE_RUN_BEFORE = """
def train(args, model, loader):
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 5)
    for epoch in range(args.epochs):
        for step, (x, y) in enumerate(loader):
            if args.trained > 0:
                args.trained -= 1
                continue
            if step < args.resume_step:
                continue
            (F.cross_entropy(model(x), y) / args.window).backward()
            if (step + 1) % args.window == 0:
                scheduler.step()  # GC112
                optimizer.step()
                optimizer.zero_grad()
"""

PUT_RIGHT = {
    "A_STEP_OF_A_CLASS": (
        "        loss.backward()  # GC101",
        "        self.critic.zero_grad()\n        loss.backward()",
    ),
    "OPTIMIZERS_LISTED_IF_THERE": (
        "        nn.utils.clip",
        "        [self.scaler.unscale_(optimizer) for optimizer in self.optimizers]\n        nn.utils.clip",
    ),
    "WINDOW_KEPT_BY_A_COUNTER": (
        "        scheduler.step()  # GC112\n        index = 0\n",
        "        if epoch:\n            scheduler.step()\n        index = 0\n",
    ),
    "EPOCHS_IN_A_STATE": (
        "        batches = iter(loader)",
        '        loader.sampler.set_epoch(state["epoch"])\n        batches = iter(loader)',
    ),
    "SETTINGS_CALLED_LIKE_THE_FUNCTION": (
        "loss.backward()  # GC106",
        "(loss / config.train.accumulate).backward()",
    ),
    "METERS_TOLD_OF_THE_LOSS": (
        "            loss.backward()  # GC101",
        "            optimizer.zero_grad()\n            loss.backward()",
    ),
    "RATE_FROM_A_FUNCTION": (
        "        scheduler.step()  # GC112\n        optimizer.step()",
        "        optimizer.step()\n        scheduler.step()",
    ),
    "FIXERS_CALLED_LIKE_OPTIMIZERS": (
        "            nn.utils.clip",
        "            scaler.unscale_(optimizer)\n            nn.utils.clip",
    ),
    "STOPS_EARLY_TO_DEBUG": ("        F.cross", "        optimizer.zero_grad()\n        F.cross"),
    "ANOTHER_LIBRARY_BEFORE_THE_LOOP": (
        "        scheduler.step()  # GC112\n        optimizer.step()",
        "        optimizer.step()\n        scheduler.step()",
    ),
    "ONE_OF_TWO_NEVER_STEPS": (
        "loss_d.backward()",
        "loss_d.backward()\n        optimizer_d.step()",
    ),
    "A_STEP_GIVEN_BACK": (
        "        optimizer.step()\n        nn.utils.clip_grad_norm_(model.parameters(), 1.0)",
        "        nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n        optimizer.step()",
    ),
    "BATCHES_OF_THE_RUN_BEFORE": (
        "                scheduler.step()  # GC112\n                optimizer.step()",
        "                optimizer.step()\n                scheduler.step()",
    ),
    "OPTIMIZERS_OF_THE_MODELS": (
        "            critic_loss(D(x), D",
        "            D.optim.zero_grad()\n            critic_loss(D(x), D",
    ),
}


@pytest.mark.parametrize("name", PUT_RIGHT)
def test_it_is_told_where_it_is(name: str) -> None:
    source = HEAD + dedent(globals()[name])
    assert told(source) == marked(source)


@pytest.mark.parametrize("name", PUT_RIGHT)
def test_it_is_not_told_when_put_right(name: str) -> None:
    wrong, right = PUT_RIGHT[name]
    source = dedent(globals()[name])
    assert wrong in source
    assert told(HEAD + source.replace(wrong, right)) == set()
