"""Faults in the smallest form of how public training code has them, each told at the line to look at."""

from __future__ import annotations

from textwrap import dedent

import pytest

from gradclinic.engine import judge
from gradclinic.static import observe_source

HEAD = """
import torch
from torch import nn
import torch.nn.functional as F
"""

OPTIMIZER_OF_EITHER_BRANCH = """
def train(model, loader, resume, path):
    if resume:
        optimizer = torch.optim.Adam(model.parameters(), 1e-4)
        optimizer.load_state_dict(torch.load(path))
    else:
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # GC109
"""

SCHEDULE_OF_TWO_SETTINGS = """
def fit(model, loader, config):
    optimizer = torch.optim.SGD(model.parameters(), lr=config.rate)
    if config.milestones is not None and config.factor is not None:
        scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, config.milestones, gamma=config.factor)
    else:
        scheduler = None
    for epoch in range(config.epochs):
        if scheduler is not None:
            scheduler.step()  # GC112
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
"""

SCHEDULE_LEADS_EVERY_BATCH_OF_A_WINDOW = """
def train(model, loader, optimizer, lr_scheduler, accumulate):
    seen = 0
    for x, y in loader:
        lr_scheduler.step()  # GC112
        loss = F.cross_entropy(model(x), y) / accumulate
        loss.backward()
        if seen % accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()
        seen += 1
"""

EVALUATED_BEFORE_THE_BATCH_IS_USED = """
class Trainer:
    def __init__(self, model, optimizer, loader, held_out):
        self.model, self.optimizer, self.loader, self.held_out = model, optimizer, loader, held_out

    def validate(self):
        self.model.eval()  # GC701
        with torch.no_grad():
            for x, y in self.held_out:
                print(F.cross_entropy(self.model(x), y).item())

    def train(self):
        self.model.train()
        for step, (x, y) in enumerate(self.loader):
            if step % 1000 == 0:
                self.validate()
            self.optimizer.zero_grad()
            F.cross_entropy(self.model(x), y).backward()
            self.optimizer.step()
"""

EVALUATED_MODEL_GIVEN_IN_PARTS = """
def validate(model, held_out):
    model.eval()
    for x, y in held_out:
        print(F.cross_entropy(model(x), y).item())  # GC703

def main(model, loader, held_out):
    groups = []
    for part in [model.layer1, model.head]:
        groups.append(dict(params=part.parameters(), lr=0.1))
    optimizer = torch.optim.SGD(groups)
    for epoch in range(10):
        model.train()
        for x, y in loader:
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        validate(model, held_out)
"""

CLEARED_IN_EVERY_TRAINING_STEP = """
import lightning as L

class Autoencoder(L.LightningModule):
    def __init__(self, every):
        super().__init__()
        self.automatic_optimization = False
        self.net = nn.Linear(4, 4)
        self.every = every

    def training_step(self, batch, batch_idx):
        optimizer = self.optimizers()
        schedule = self.lr_schedulers()
        optimizer.zero_grad()  # GC103
        loss = F.mse_loss(self.net(batch), batch) / self.every
        self.manual_backward(loss)
        if (batch_idx + 1) % self.every == 0:
            optimizer.step()
            schedule.step()
"""

WINDOW_OVER_A_LOGGED_RANGE = """
def train(model, batches, optimizer, logger, count, accumulate):
    for i in logger.log_every(range(count), 10):
        if i >= count:
            break
        x, y = next(batches)
        F.cross_entropy(model(x), y).backward()  # GC106
        if (i + 1) % accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()
        logger.update(lr=optimizer.param_groups[0]["lr"])
"""

NETWORKS_OUT_OF_SIGHT = """
class Agent:
    def __init__(self, make_network):
        self.actor, self.critic = make_network(), make_network()
        self.actor_optim = torch.optim.Adam(self.actor.parameters())
        self.critic_optim = torch.optim.Adam(self.critic.parameters())

    def learn(self, batches):
        for states, actions, returns in batches:
            gain = self.actor(states).gather(1, actions).mean()
            error = F.mse_loss(self.critic(states), returns)
            self.actor_optim.zero_grad()
            (-gain).backward(retain_graph=True)  # GC209
            self.actor_optim.step()
            self.critic_optim.zero_grad()
            error.backward()
            self.critic_optim.step()
"""

ONE_STEP_BESIDE_A_COPY_THAT_FOLLOWS = """
import copy

class Learner:
    def __init__(self):
        self.net = nn.Linear(4, 2)
        self.target = copy.deepcopy(self.net)
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=1e-3)

    def learn(self, states, rewards, after):
        with torch.no_grad():
            goal = rewards + 0.9 * self.target(after).max(1).values
        loss = F.mse_loss(self.net(states).max(1).values, goal)
        loss.backward()  # GC101
        self.optimizer.step()
        for slow, live in zip(self.target.parameters(), self.net.parameters()):
            slow.data.lerp_(live.data, 0.01)
"""

LIKELIHOOD_LEFT_TO_SUBCLASSES = """
class LabelModel(nn.Module):
    def forward(self, *args):
        raise NotImplementedError

    def fit(self, batches):
        optimizer = torch.optim.SGD(self.parameters(), lr=0.1)
        running_loss = 0.0
        for inputs in batches:
            optimizer.zero_grad()
            loss = -torch.mean(self(*inputs))
            loss.backward()
            optimizer.step()
            running_loss += loss  # GC212
        return running_loss
"""

RESIZED_PROBABILITIES = """
class Ranker(nn.Module):
    def __init__(self):
        super().__init__()
        self.score = nn.Linear(8, 5)

    def forward(self, x):
        return F.softmax(self.score(x), dim=1)

model = Ranker()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
criterion = nn.CrossEntropyLoss()
for x, y in loader:
    optimizer.zero_grad()
    loss = criterion(model(x).resize(1, 5), y)  # GC401
    loss.backward()
    optimizer.step()
"""

CRITERION_FROM_OUTSIDE = """
def train(model, loader, optimizer, criterion, accumulation_steps):
    optimizer.zero_grad()
    for i, (x, y) in enumerate(loader):
        loss = criterion(model(x), y)
        loss.backward()  # GC106
        if (i + 1) % accumulation_steps == 0 or i + 1 == len(loader):
            optimizer.step()
            optimizer.zero_grad()
"""

FAKES_WERE_DETACHED = """
def train(G, D, loader, of_generator, of_discriminator, criterion):
    for real, label in loader:
        fake = G(torch.randn(8, 100))
        of_discriminator.zero_grad()
        loss = criterion(D(real), label) + criterion(D(fake.detach()), label)
        loss.backward(retain_graph=True)  # GC209
        of_discriminator.step()
        of_generator.zero_grad()
        criterion(D(fake), label).backward()
        of_generator.step()
"""

SCALER_THAT_MAY_BE_MISSING = """
def train(model, loader, optimizer, scaler, most):
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        if scaler is not None:
            scaler.scale(loss).backward()
        else:
            loss.backward()
        if most > 0:
            nn.utils.clip_grad_norm_(model.parameters(), most)  # GC501
        if scaler is not None:
            scaler.step(optimizer)
            scaler.update()
        else:
            optimizer.step()
"""

SAMPLER_CLASS_OF_EITHER_KIND = """
from torch.utils.data import DataLoader, DistributedSampler, RandomSampler

def main(rank, data, model, optimizer):
    make_sampler = RandomSampler if rank == -1 else DistributedSampler
    batches = DataLoader(data, sampler=make_sampler(data), batch_size=8)  # GC904
    for epoch in range(10):
        for x, y in batches:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
"""

RATE_OF_A_SCHEDULE_BUILT_ELSEWHERE = """
from solvers import initialize_optimizer, initialize_scheduler

def train(model, loader, config):
    optimizer = initialize_optimizer(model.parameters(), config)
    scheduler = initialize_scheduler(optimizer, config)
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        scheduler.step()
        print(scheduler.get_lr())  # GC308
"""

MODEL_THAT_TRAINS_AND_EVALUATES_ITSELF = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.head = nn.Conv2d(1, 8, 3), nn.Linear(8, 10)
        self.optimizer = torch.optim.Adam(self.parameters())

    def forward(self, x):
        return self.head(F.dropout(self.conv(x).mean((2, 3)), training=self.training))

    def fit(self, loader):
        self.train()
        for x, y in loader:
            self.optimizer.zero_grad()
            F.cross_entropy(self.forward(x), y).backward()
            self.optimizer.step()

    def score(self, loader):
        self.eval()
        total = 0
        for x, y in loader:
            total += F.cross_entropy(self.forward(x), y).item()  # GC703
        return total

net = Net()
net.fit(train_loader)
print(net.score(test_loader))
"""

ONE_FUNCTION_TO_TRAIN_AND_EVALUATE = """
class Trainer:
    def __init__(self, model):
        self.model, self.criterion = model, nn.CrossEntropyLoss()
        self.optimizer = torch.optim.Adam(model.parameters())

    def run_epoch(self, loader, train=True):
        self.model.train(train)
        for x, y in loader:
            loss = self.criterion(self.model(x), y)  # GC703
            if train:
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()

    def fit(self, loader, held_out):
        for epoch in range(10):
            self.run_epoch(loader)
            self.run_epoch(held_out, train=False)
"""

VALIDATION_THAT_HANDS_ITS_LOSS_ON = """
class Trainer:
    def __init__(self, model, loss, optim, stats):
        self.model, self.loss, self.optim, self.stats = model, loss, optim, stats

    def validate(self, batches):
        self.model.eval()
        for batch in batches:
            self.stats.update(self.loss(self.model(batch.source), batch.target))  # GC703
        self.model.train()

    def train(self, batches):
        for batch in batches:
            self.optim.zero_grad()
            self.loss(self.model(batch.source), batch.target).backward()
            self.optim.step()
"""

TWO_OPTIMIZERS_CLEARED_IN_THEIR_WINDOWS = """
import lightning.pytorch as pl

class Autoencoder(pl.LightningModule):
    def __init__(self, loss, window):
        super().__init__()
        self.automatic_optimization = False
        self.loss, self.window = loss, window

    def training_step(self, batch, batch_idx):
        g_opt, d_opt = self.optimizers()
        image = self(batch)
        g_opt.zero_grad()
        self.manual_backward(self.loss(image, 0))
        if (batch_idx + 1) % self.window == 0:
            g_opt.step()
        d_opt.zero_grad()  # GC103
        self.manual_backward(self.loss(image, 1))
        if (batch_idx + 1) % self.window == 0:
            d_opt.step()
"""

PROGRAMS = {name: source for name, source in globals().items() if name.isupper() and name != "HEAD"}


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_is_told_where_it_is(name: str) -> None:
    source = HEAD + dedent(PROGRAMS[name])
    marked = {
        (line.rpartition("# ")[2], number)
        for number, line in enumerate(source.splitlines(), 1)
        if "  # GC" in line
    }
    told = {
        (finding.code, finding.location.line)
        for finding in judge([observe_source(source, "train.py")])
        if finding.location
    }
    assert told == marked
