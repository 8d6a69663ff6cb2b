"""Correct programs that read like a fault, in the smallest form of how respected projects have them."""

from __future__ import annotations

from textwrap import dedent

import pytest

from gradclinic.engine import judge
from gradclinic.static import observe_source
from tests.rules.scripts import codes_by_lint

HEAD = """
import torch
from torch import nn
import torch.nn.functional as F
"""

GRAPH_OF_THE_PENALTY_USED_AGAIN = """
def train(model, loader, optimizer):
    penalty = model.head.weight.norm(p=1)
    for x, y in loader:
        loss = F.cross_entropy(model(x), y) + penalty
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
"""

FAKES_USED_TWICE = """
def train(G, D, loader, of_generator, of_discriminator, criterion):
    for real, label in loader:
        fake = G(torch.randn(8, 100))
        of_discriminator.zero_grad()
        loss = criterion(D(real), label) + criterion(D(fake), label)
        loss.backward(retain_graph=True)
        of_discriminator.step()
        of_generator.zero_grad()
        criterion(D(fake), label).backward()
        of_generator.step()
"""

FAKES_OF_A_GENERATOR_OUT_OF_SIGHT = """
from models import Critic, Generator

gen, critic = Generator(), Critic()
of_gen = torch.optim.Adam(gen.parameters())
of_critic = torch.optim.Adam(critic.parameters())
for real, label in loader:
    for _ in range(5):
        fake = gen(torch.randn(8, 100))
        loss = critic(fake).mean() - critic(real).mean()
        critic.zero_grad()
        loss.backward(retain_graph=True)
        of_critic.step()
    gain = -critic(fake).mean()
    gen.zero_grad()
    gain.backward()
    of_gen.step()
"""

STATE_KEPT_BY_THE_MODEL = """
def train(model, loader, optimizer):
    model.init_hidden()
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
"""

OPTIMIZER_TOLD_WHAT_TO_STEP = """
from optimizers import build_optimizer

def main(model, loader):
    optimizer = build_optimizer({key: model[key].parameters() for key in model})
    model, optimizer, start = load_checkpoint(model, optimizer)
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model.decoder(x), y).backward()
        optimizer.step("decoder")

if __name__ == "__main__":
    main(nets, data)
"""

SCALER_OF_TWO_CONDITIONS = """
def train(model, loader, optimizer, scaler, args):
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        if args.fp16:
            scaler.scale(loss).backward()
        else:
            loss.backward()
        if scaler is not None:
            scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if scaler is not None:
            scaler.step(optimizer)
            scaler.update()
        else:
            optimizer.step()
"""

MODEL_FOR_INFERENCE_ONLY = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)

def export(model, x):
    model = Net()
    return model(x)

def main(loader):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        export(model, x)

if __name__ == "__main__":
    main(data)
"""

OPTIMIZERS_BEHIND_ONE_FACE = """
from optimizers import CombinedOptimizer

def main(body, head, loader, scaler):
    slow = torch.optim.SGD(body.parameters(), lr=0.1)
    fast = torch.optim.AdamW(head.parameters(), lr=0.1)
    optimizer = CombinedOptimizer([slow, fast])
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(head(body(x)), y).backward()
        optimizer.step()

if __name__ == "__main__":
    main(nets, heads, data, None)
"""

OPTIMIZER_OF_A_LATER_TASK = """
def train(model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()

def main(model, loader):
    train(model, loader)
    later = torch.optim.SGD(model.parameters(), lr=0.01)
    print(later)

if __name__ == "__main__":
    main(net, data)
"""

PARTS_IN_MODES_OF_THEIR_OWN = """
def train(entries, loader, optimizer):
    for entry in entries:
        if entry.trainable:
            entry.model.train()
        else:
            entry.model.eval()
    for x, y in loader:
        optimizer.zero_grad()
        loss = 0
        for entry in entries:
            loss = loss + F.cross_entropy(entry.model(x), y)
        loss.backward()
        optimizer.step()
"""

SCHEDULE_STEPPED_BY_A_HOOK = """
from framework import Agent, train_experience

def main(stream):
    agent = Agent()
    agent.model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(agent.model.parameters(), lr=0.1)
    agent.scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.99)
    agent.add_post_hooks(lambda a, e: a.scheduler.step())
    for x, y in stream:
        optimizer.zero_grad()
        F.cross_entropy(agent.model(x), y).backward()
        optimizer.step()

if __name__ == "__main__":
    main(data)
"""

DETACHED_WITH_THE_BACKWARD = """
def chunked(model, chunks, optimizer, with_backward):
    losses = []
    for x, y in chunks:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        if with_backward:
            loss.backward()
            loss = loss.detach()
        losses.append(loss)
        optimizer.step()
    return sum(losses)
"""

MODEL_THAT_EVALUATES_ITSELF_WITHOUT_GRADIENTS = """
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

    @torch.no_grad()
    def score(self, loader):
        self.eval()
        total = 0
        for x, y in loader:
            total += F.cross_entropy(self.forward(x), y).item()
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
            with torch.set_grad_enabled(self.learns(train)):
                loss = self.criterion(self.model(x), y)
            if train:
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()

    def fit(self, loader, held_out):
        for epoch in range(10):
            self.run_epoch(loader)
            self.run_epoch(held_out, train=False)
"""

PLACE_IN_A_WINDOW = """
from itertools import cycle

net = nn.Linear(4, 1)
optimizer = torch.optim.Adam(net.parameters())
for epoch in range(args.epochs):
    optimizer.zero_grad()
    for batch, accum_batches in zip(train_loader, cycle(range(args.update_freq))):
        loss = net(batch).mean() / args.update_freq
        loss.backward()
        if (accum_batches + 1) % args.update_freq == 0:
            optimizer.step()
            optimizer.zero_grad()
"""

UPDATE_LEFT_OUT_ON_PURPOSE = """
def update(self, batch):
    done = False
    while not done:
        loss = self.net(batch).mean()
        self.optimizer.zero_grad(set_to_none=True)
        self.scaler.scale(loss).backward()
        if self.config.clip:
            self.scaler.unscale_(self.optimizer)
            norm = nn.utils.clip_grad_norm_(self.net.parameters(), self.config.clip)
            if norm > self.config.limit and self.config.skips:
                self.optimizer.zero_grad(set_to_none=True)
                self.scaler.step(self.optimizer)
                self.scaler.update()
                continue
        self.scaler.step(self.optimizer)
        self.scaler.update()
        done = True
"""

RATES_DRAWN = """
def rates(config, epochs, batches, window):
    optimizer = torch.optim.SGD(nn.Linear(2, 1).parameters(), lr=0.1)
    schedule = Trainer.create_schedule(config, optimizer)
    drawn = []
    for epoch in range(epochs):
        for i in range(batches):
            if (i + 1) % window == 0:
                optimizer.step()
                Trainer.advance(schedule, epoch=epoch, step=i)
                optimizer.zero_grad()
        drawn.append(schedule.get_last_lr())
    return drawn
"""

ACTIONS_OF_A_TEACHER = """
def evaluate(path, envs, Network, episodes):
    network = Network(envs)
    network.load_state_dict(torch.load(path))
    network.eval()
    returns = []
    seen, _ = envs.reset()
    while len(returns) < episodes:
        values = network(torch.tensor(seen))
        seen, reward, ended, _, _ = envs.step(values.argmax(1).numpy())
        if ended:
            returns.append(reward)
    return returns
"""

LOSS_HANDED_ON_IN_EVAL_MODE = """
class Trainer:
    def __init__(self, model, loss, optim, stats):
        self.model, self.loss, self.optim, self.stats = model, loss, optim, stats

    def finetune(self, batches):
        self.model.eval()
        for batch in batches:
            self.stats.update(self.loss(self.model(batch.source), batch.target))
        self.model.train()

    def train(self, batches):
        for batch in batches:
            self.optim.zero_grad()
            self.loss(self.model(batch.source), batch.target).backward()
            self.optim.step()
"""

ONE_OPTIMIZER_STEPPED_LESS_OFTEN = """
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
        d_opt.zero_grad()
        self.manual_backward(self.loss(image, 1))
        d_opt.step()
        if (batch_idx + 1) % self.window == 0:
            g_opt.zero_grad()
            self.manual_backward(self.loss(image, 0))
            g_opt.step()
"""

PROGRAMS = {name: source for name, source in globals().items() if name.isupper() and name != "HEAD"}


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_is_left_alone(name: str) -> None:
    assert codes_by_lint(HEAD + dedent(PROGRAMS[name])) == []


def test_a_test_of_an_optimizer_is_no_training_loop() -> None:
    source = dedent(
        """
        import torch

        def test_rate(rate):
            weight = torch.nn.Parameter(torch.ones(3))
            optimizer = torch.optim.SGD([weight], lr=rate)
            for _ in range(3):
                weight.square().sum().backward()
                optimizer.step()
        """
    )
    told = {
        path: {f.code for f in judge([observe_source(source, path)])}
        for path in ("tests/test_rate.py", "a.py")
    }
    assert told == {"tests/test_rate.py": set(), "a.py": {"GC101"}}
