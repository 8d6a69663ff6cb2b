"""Optimizers and schedules that functions and classes keep to themselves, and that nobody steps."""

from __future__ import annotations

from textwrap import dedent

import pytest

from tests.static.reading import TORCH, marked, told

A_CRITIC_WHOSE_RATE_ALONE_CHANGES = """
def train(config, G, D, loader):
    opt_g = torch.optim.Adam(G.parameters(), lr=config.lr)
    opt_d = torch.optim.Adam(D.parameters(), lr=config.lr)

    def lower(optimizer, epoch):
        for group in optimizer.param_groups:
            group["lr"] = config.lr * 0.5**epoch

    for epoch in range(config.epochs):
        for image in loader:
            opt_d.zero_grad()
            fake = G(image)
            d_loss = D(fake.detach()).mean() - D(image).mean()
            d_loss.backward()  # GC104
            opt_g.zero_grad()
            g_loss = -D(fake).mean()
            g_loss.backward()
            opt_g.step()
        lower(opt_g, epoch)
        lower(optimizer=opt_d, epoch=epoch)
"""

WRITTEN_DOWN_AND_NEVER_STEPPED = """
from saving import save_checkpoint


def train(model, loader, epochs=10):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()  # GC104
    save_checkpoint(model, optimizer, "model.pt")
    return model
"""

A_TRAINER_WITHOUT_A_STEP = """
class Trainer:
    def __init__(self, model, loader, args):
        self.model, self.loader, self.args = model, loader, args
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=args.lr)

    def train_epoch(self, epoch):
        for x, y in self.loader:
            self.optimizer.zero_grad()
            F.cross_entropy(self.model(x), y).backward()  # GC104

    def train(self):
        for epoch in range(self.args.epochs):
            self.train_epoch(epoch)
            print(epoch, self.optimizer.param_groups[0]["lr"])
"""

AN_ACTOR_WITHOUT_A_STEP = """
from nets import Actor, Critic


class Agent:
    def __init__(self):
        self.actor, self.critic = Actor(), Critic()
        self.actor_opt = torch.optim.Adam(self.actor.parameters(), lr=1e-4)
        self.critic_opt = torch.optim.Adam(self.critic.parameters(), lr=1e-3)

    def update(self, buffer, iterations):
        for it in range(iterations):
            s, a, r, s2 = buffer.sample(64)
            q = r + 0.99 * self.critic(s2, self.actor(s2)).detach()
            self.critic_opt.zero_grad()
            F.mse_loss(self.critic(s, a), q).backward()
            self.critic_opt.step()
            self.actor_opt.zero_grad()
            (-self.critic(s, self.actor(s)).mean()).backward()  # GC104
"""

A_SCHEDULE_THAT_A_CLASS_NEVER_ADVANCES = """
class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        self.scheduler = torch.optim.lr_scheduler.MultiStepLR(self.optimizer, [30, 60])  # GC114

    def train_epoch(self, loader):
        for x, y in loader:
            self.optimizer.zero_grad()
            F.cross_entropy(self.model(x), y).backward()
            self.optimizer.step()

    def fit(self, loader, epochs):
        for epoch in range(epochs):
            self.train_epoch(loader)
            print(epoch, self.scheduler.get_last_lr())
"""

FAULTY = {
    name: text for name, text in globals().items() if name.isupper() and name != "TORCH" and "# GC" in text
}


@pytest.mark.parametrize("program", FAULTY.values(), ids=FAULTY)
def test_what_nobody_steps_is_named(program: str):
    source = TORCH + dedent(program)
    assert told(source) == marked(source)


STEPPED_BY_WHOM_IT_IS_GIVEN_TO = """
def train(D, loader, lower):
    opt_d = torch.optim.Adam(D.parameters(), lr=0.1)

    def finish(optimizer):
        optimizer.step()

    for epoch in range(3):
        for image in loader:
            opt_d.zero_grad()
            D(image).mean().backward()
            finish(opt_d)
"""

GIVEN_TO_SOMEBODY_OUT_OF_SIGHT = """
def train(D, loader, lower):
    opt_d = torch.optim.Adam(D.parameters(), lr=0.1)
    for epoch in range(3):
        for image in loader:
            opt_d.zero_grad()
            D(image).mean().backward()
            lower(opt_d)
"""

STEPPED_BY_A_METHOD_THAT_OTHERS_CALL = """
class Trainer:
    def __init__(self, model, hooks):
        self.model, self.hooks = model, hooks
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def apply(self):
        self.optimizer.step()

    def fit(self, loader):
        for x, y in loader:
            self.optimizer.zero_grad()
            F.cross_entropy(self.model(x), y).backward()
            self.hooks.after_backward()
"""

STEPPED_BY_AN_HEIR = """
class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def after(self):
        pass

    def fit(self, loader):
        for x, y in loader:
            self.optimizer.zero_grad()
            F.cross_entropy(self.model(x), y).backward()
            self.after()


class Stepping(Trainer):
    def after(self):
        for optimizer in [self.optimizer]:
            optimizer.step()
"""

ADVANCED_BY_WHO_CALLS_IT_EACH_EPOCH = """
class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        self.scheduler = torch.optim.lr_scheduler.MultiStepLR(self.optimizer, [30, 60])

    def train_epoch(self, loader):
        for x, y in loader:
            self.optimizer.zero_grad()
            F.cross_entropy(self.model(x), y).backward()
            self.optimizer.step()
"""

STEPPED_BY_WHO_CALLS_IT_EACH_BATCH = """
class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def backward(self, x, y):
        self.optimizer.zero_grad()
        F.cross_entropy(self.model(x), y).backward()
"""

STEPPED_BY_WHO_LOGS_AS_WELL = """
from logs import log_and_step, print_and_advance

def train(model, loader, epochs):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 10)
    for epoch in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            log_and_step(optimizer)
        print_and_advance(scheduler)
"""

RIGHT = {
    name: text
    for name, text in globals().items()
    if name.isupper() and name not in {"TORCH", "FAULTY", *FAULTY}
}


@pytest.mark.parametrize("program", RIGHT.values(), ids=RIGHT)
def test_what_others_may_step_is_left_alone(program: str):
    assert told(TORCH + dedent(program)) == set()


AN_OPTIMIZER_TRIED_OUT = """
def given(values, grad):
    made = torch.tensor(values)
    made.grad = torch.tensor(grad)
    return made

weights = given([1.0, 2.0], [0.1, 0.2])
tried = torch.optim.SGD([weights], lr=0.1)
for k in range(5):{body}
    tried.step()

model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    F.mse_loss(model(x), y).backward()
    optimizer.step()
"""


def test_steps_around_which_nothing_is_computed_try_an_optimizer_out() -> None:
    assert told(TORCH + AN_OPTIMIZER_TRIED_OUT.format(body="")) == set()
    forgotten = AN_OPTIMIZER_TRIED_OUT.format(body="\n    F.mse_loss(nn.Linear(2, 1)(weights), weights)")
    assert {code for code, _ in told(TORCH + forgotten)} == {"GC105"}
