"""Graphs kept for nobody, told in spite of what else the file does; and the nearest ones that are needed."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from gradclinic.engine import judge
from gradclinic.static import observe_source
from tests.static.reading import TORCH, marked, told

A_RECURRENT_MODEL_IN_SIGHT = """
class Tagger(nn.Module):
    def __init__(self, cell):
        super().__init__()
        self.lstm = nn.LSTM(4, 8)
        self.head = nn.Linear(8, 3)

    def forward(self, x, state):
        x, state = self.lstm(x, state)
        return self.head(x), state

def run(loader, criterion):
    tagger = Tagger("lstm")
    optimizer = torch.optim.SGD(tagger.parameters(), lr=0.1)
    for x, y in loader:
        scores, _ = tagger(x, torch.zeros(1, 1, 8))
        loss = criterion(scores, y)
        optimizer.zero_grad()
        loss.backward(retain_graph=True)  # GC209
        optimizer.step()
"""

STATE_GIVEN_AND_DETACHED = """
from models import Recogniser

def run(loader, criterion):
    model = Recogniser()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    hidden = torch.zeros(1, 8)
    for x, y in loader:
        scores, hidden = model(x, hidden)
        hidden = hidden.detach()
        loss = criterion(scores, y)
        optimizer.zero_grad()
        loss.backward(retain_graph=True)  # GC209
        optimizer.step()
"""

A_MODULE_BY_WHAT_IS_DONE_TO_IT = """
def run(controller, judge, steps, optimizer):
    controller.train()
    for step in range(steps):
        chance, chosen = controller()
        with torch.no_grad():
            reward = judge(chosen)
        loss = -chance * reward
        loss.backward(retain_graph=True)  # GC209
        if (step + 1) % 4 == 0:
            optimizer.step()
            controller.zero_grad()
"""

ANOTHER_FUNCTION_FOR_ITSELF = """
net = nn.Linear(4, 3)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

def warm_up(upper, low, wanted):
    optimizer = torch.optim.SGD(upper.parameters(), lr=0.1)
    optimizer.zero_grad()
    F.mse_loss(upper(low), wanted).backward()
    optimizer.step()

def run(loader):
    for x, y in loader:
        optimizer.zero_grad()
        F.mse_loss(net(x), y).backward(retain_graph=True)  # GC209
        optimizer.step()

run(loader)
"""

SOME_OF_IT_FROZEN = """
net, head = nn.Linear(4, 4), nn.Linear(4, 3)
net.weight.requires_grad = False
optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    F.mse_loss(head(net(x)), y).backward(retain_graph=True)  # GC209
    optimizer.step()
"""

PERHAPS_SCALED = """
def run(model, loader, optimizer, mixed):
    scaler = None
    if mixed:
        scaler = torch.cuda.amp.GradScaler()
    for x, y in loader:
        loss = F.mse_loss(model(x), y)
        optimizer.zero_grad()
        if scaler is not None:
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        else:
            loss.backward(retain_graph=True)  # GC209
            optimizer.step()
"""

STEPS_OF_A_BATCH = """
def step(model, images, labels, optimizer, criterion):
    optimizer.zero_grad()
    scores = model(images)
    right, shape = criterion(scores, labels), scores.norm()
    loss = right + shape
    loss.backward(retain_graph=True)  # GC209
    optimizer.step()
    return loss, right, shape.item()
"""

CELLS_CHOSEN_BY_A_SETTING = """
class Reader(nn.Module):
    def __init__(self, cell):
        super().__init__()
        self.cell = nn.LSTM if cell == "lstm" else nn.GRU
        self.rnn = self.cell(4, 8)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        states, last = self.rnn(x)
        if isinstance(last, tuple):
            last = tuple([part.relu() for part in last])
        return self.head(states) + self.head(last)

def run(loader, cell):
    reader = Reader(cell)
    optimizer = torch.optim.SGD(reader.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        F.mse_loss(reader(x), y).backward(retain_graph=True)  # GC209
        optimizer.step()
"""

TOLD = {name: text for name, text in list(globals().items()) if name.isupper() and name != "TORCH"}

STATE_GIVEN_AND_KEPT = STATE_GIVEN_AND_DETACHED.replace("hidden.detach()", "hidden")

A_RECURRENT_MODEL_OUT_OF_SIGHT = """
from models import TaggerLSTM

def run(loader):
    tagger = TaggerLSTM()
    optimizer = torch.optim.SGD(tagger.parameters(), lr=0.1)
    for x, y in loader:
        loss = F.cross_entropy(tagger(x), y)
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
"""

A_MODEL_NOBODY_KNOWS_IN_A_FILE_ABOUT_RECURRENT_ONES = """
def evaluate_rnn(model, loader):
    return [model(x) for x, _ in loader]

def run(model, loader, optimizer):
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
"""

A_LAYER_OUT_OF_SIGHT_THAT_SOUNDS_RECURRENT = """
from layers import build

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = build(4)
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        return self.head(self.rnn(self.head(x)))

def run(loader):
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        F.mse_loss(net(x), y).backward(retain_graph=True)
        optimizer.step()
"""

A_FUNCTION_THAT_GIVES_THE_SAME = """
def run(controller, features, steps, optimizer):
    controller.train()
    for step in range(steps):
        chance = features()
        loss = -chance * controller()
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
"""

HANDED_TO_THE_OTHER_FUNCTION = """
class Trainer:
    def __init__(self, G, D, of_d, of_g):
        self.G, self.D, self.of_d, self.of_g = G, D, of_d, of_g

    def judge(self, loader):
        for real, _ in loader:
            self.fake = self.G(torch.randn(8, 100))
            loss = self.D(self.fake).mean() - self.D(real).mean()
            self.of_d.zero_grad()
            loss.backward(retain_graph=True)
            self.of_d.step()
            self.hooks.call("judged")

    def fool(self):
        self.of_g.zero_grad()
        (-self.D(self.fake).mean()).backward()
        self.of_g.step()
"""

RETURNED_TO_WHOEVER_CALLS_THE_OTHER = """
def judge(G, D, loader, of_d):
    for real, _ in loader:
        fake = G(torch.randn(8, 100))
        loss = D(fake).mean() - D(real).mean()
        of_d.zero_grad()
        loss.backward(retain_graph=True)
        of_d.step()
    return fake

def fool(D, fake, of_g):
    of_g.zero_grad()
    (-D(fake).mean()).backward()
    of_g.step()
"""

FAKES_GIVEN_BACK = """
def judge(G, D, images, of_d):
    fake = G(torch.randn(8, 100))
    loss = D(fake).mean() - D(images).mean()
    of_d.zero_grad()
    loss.backward(retain_graph=True)
    of_d.step()
    return loss, fake
"""

FAKES_OF_SOMEBODY = """
def judge(D, fakes, images, of_d):
    loss = D(fakes).mean() - D(images).mean()
    of_d.zero_grad()
    loss.backward(retain_graph=True)
    of_d.step()
    return loss
"""

STATE_KEPT_BY_A_MODEL_IN_SIGHT = """
class Reader(nn.Module):
    def __init__(self, cell):
        super().__init__()
        self.rnn = getattr(nn, cell)(4, 8)
        self.last = None

    def forward(self, x):
        states, self.last = self.rnn(x, self.last)
        return states

def run(loader, cell):
    reader = Reader(cell)
    optimizer = torch.optim.SGD(reader.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        F.mse_loss(reader(x), y).backward(retain_graph=True)
        optimizer.step()
"""

PERHAPS_THE_LOSS_OF_BEFORE = """
def run(model, loader, optimizer, start, every):
    for step, (x, y) in enumerate(loader):
        if step < start:
            loss = F.mse_loss(model(x), y)
        elif step % every == 0:
            loss = F.l1_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
"""

RIGHT = {
    name: text
    for name, text in list(globals().items())
    if name.isupper() and name not in {"TORCH", "TOLD", *TOLD}
}


@pytest.mark.parametrize("name", TOLD)
def test_a_graph_kept_for_nobody_is_told(name: str) -> None:
    source = TORCH + dedent(TOLD[name])
    assert told(source) == marked(source)


@pytest.mark.parametrize("name", RIGHT)
def test_a_graph_that_may_be_gone_through_again_is_not(name: str) -> None:
    assert told(TORCH + dedent(RIGHT[name])) == set()


LEARNER = """
class Learner:
    def __init__(self):
        self.net = nn.Linear(4, 2)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def learn(self, seen, wanted):
        for _ in range(4):
            loss = F.mse_loss(self.net(seen), wanted)
            self.optimizer.zero_grad()
            loss.backward(retain_graph=True)
            self.optimizer.step()
"""
PLAYS = """
from learning import Learner

learner, body = Learner(), nn.Linear(4, 4)
for x, y in loader:
    seen = {seen}
    learner.learn(seen, y)
"""


def codes(path: Path) -> set[str]:
    findings = judge([observe_source(path.read_text(), str(path), beside=())])
    return {finding.code for finding in findings}


def test_who_calls_it_is_asked_what_a_function_is_given(tmp_path: Path) -> None:
    learning = tmp_path / "learning.py"
    learning.write_text(TORCH + LEARNER)
    assert codes(learning) == set()
    (tmp_path / "play.py").write_text(TORCH + PLAYS.format(seen="x"))
    assert codes(learning) == {"GC209"}


def test_one_caller_that_gives_a_graph_is_enough(tmp_path: Path) -> None:
    learning = tmp_path / "learning.py"
    learning.write_text(TORCH + LEARNER)
    (tmp_path / "play.py").write_text(TORCH + PLAYS.format(seen="x"))
    (tmp_path / "play_on.py").write_text(TORCH + PLAYS.format(seen="body(x)"))
    assert codes(learning) == set()


IN_THE_HANDS_OF_LIGHTNING = """
import pytorch_lightning as pl

class Task(pl.LightningModule):
    def __init__(self, agent):
        super().__init__()
        self.agent, self.last = agent, 0

    def training_step(self, batch, batch_idx):
        x, y = batch
        scores = self.agent.forward(x) BEFORE
        AFTER
        return self.agent.compute_loss(scores, y)

    def backward(self, loss):
        loss.backward(retain_graph=True)  # GC209
"""


def test_lightning_goes_backward_once_for_every_step() -> None:
    source = TORCH + IN_THE_HANDS_OF_LIGHTNING.replace("BEFORE", "").replace("AFTER", "pass")
    assert told(source) == marked(source)


@pytest.mark.parametrize(
    ("before", "after"),
    [("+ self.last", "self.last = scores"), ("", "self.automatic_optimization = False")],
    ids=["carried on to the next", "by hand"],
)
def test_lightning_may_go_on_with_the_graph(before: str, after: str) -> None:
    source = TORCH + IN_THE_HANDS_OF_LIGHTNING.replace("BEFORE", before).replace("AFTER", after)
    assert told(source) == set()
