"""Evaluations in the wrong mode or with graphs, written in the ways people write them, and put right."""

from __future__ import annotations

from textwrap import dedent

import pytest

from tests.static.reading import marked, told

HEAD = """
import torch
from torch import nn
import torch.nn.functional as F
"""

NOTHING_ACTS_IN_IT = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 4), nn.Dropout(), nn.Linear(4, 2))

    def forward(self, x):
        return self.layers(x)

def accuracy_of(model, loader):
    correct = 0
    with torch.no_grad():
        for x, y in loader:
            correct += (model(x).argmax(1) == y).sum()  # GC702
    return correct

def run(train_loader, val_loader):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(10):
        model.train()
        for x, y in train_loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        print(accuracy_of(model, val_loader))
"""

IN_A_FUNCTION_THAT_FREEZES = """
def main(model, train_loader, val_loader):
    for p in model.features.parameters():
        p.requires_grad = False
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(10):
        model.train()
        for x, y in train_loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        model.eval()
        correct = 0
        for x, y in val_loader:
            correct += (model(x).argmax(1) == y).sum().item()  # GC703
"""

STATE_ASKED_OF_THE_MODEL = """
def evaluate(model, data):
    model.eval()
    model.reset()
    hidden = model.init_hidden(10)
    total = 0
    for x, y in data:
        output, hidden = model(x, hidden)  # GC703
        total += F.cross_entropy(output, y).item()
    return total

def train(model, data, val_data):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(10):
        model.train()
        hidden = model.init_hidden(20)
        for x, y in data:
            optimizer.zero_grad()
            output, hidden = model(x, hidden)
            F.cross_entropy(output, y).backward()
            optimizer.step()
        print(evaluate(model, val_data))
"""

TEXTS_GENERATED_IN_BETWEEN = """
def run(model, loader, prompts, score):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model.train()
    for epoch in range(10):
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        model.eval()  # GC701
        with torch.no_grad():
            for prompt in prompts:
                print(score(model.generate(prompt)))
"""

TRIED_FOR_ONE_EPOCH = """
EPOCHS = 1

def run(model, loader, val_loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model.train()
    for epoch in range(EPOCHS):
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        model.eval()  # GC701
        with torch.no_grad():
            for x, y in val_loader:
                print(F.cross_entropy(model(x), y).item())
"""

ONE_LOOP_FOR_ALL_SPLITS = """
def run(model, loaders, args):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    splits = ["train", "valid"] + (["test"] if args.test else [])
    for epoch in range(10):
        for split in splits:
            if split == "train":
                model.train()
            else:
                model.eval()
            for x, y in loaders[split]:
                loss = F.cross_entropy(model(x), y)  # GC703
                if split == "train":
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                print(loss.item())
"""

AS_IN_THE_FIRST_YEARS_AND_BEFORE_OTHER_CALLS = """
def evaluate(model, data):
    model.eval()
    total = 0.0
    for x, y in data:
        x, y = torch.autograd.Variable(x), torch.autograd.Variable(y)
        total += F.cross_entropy(model(x), y).item()  # GC703
    return total

model = build()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(10):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    stopper(evaluate(model, held_out), model)
"""

PHASES_OF_AN_EPOCH = """
model = build()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 10)
for epoch in range(epochs):
    for phase in ["train", "val"]:
        if phase == "train":
            schedule.step()  # GC112
            model.train()
        else:
            model.eval()
        for x, y in loaders[phase]:
            optimizer.zero_grad()
            with torch.set_grad_enabled(phase == "train"):
                loss = F.cross_entropy(model(x), y)
                if phase == "train":
                    loss.backward()
                    optimizer.step()
"""

FAULTS = {name: text for name, text in list(globals().items()) if name.isupper() and name != "HEAD"}
PUT_RIGHT = {
    "NOTHING_ACTS_IN_IT": ("    correct = 0\n", "    model.eval()\n    correct = 0\n"),
    "IN_A_FUNCTION_THAT_FREEZES": ("        correct = 0\n", "        torch.set_grad_enabled(False)\n"),
    "STATE_ASKED_OF_THE_MODEL": ("def evaluate", "@torch.no_grad()\ndef evaluate"),
    "TEXTS_GENERATED_IN_BETWEEN": ("model.generate(prompt)", "model.predict(prompt)"),
    "TRIED_FOR_ONE_EPOCH": ("in range(EPOCHS):\n", "in range(EPOCHS):\n        model.train()\n"),
    "AS_IN_THE_FIRST_YEARS_AND_BEFORE_OTHER_CALLS": ("Variable(x)", "Variable(x, volatile=True)"),
    "PHASES_OF_AN_EPOCH": ("schedule.step()  # GC112", "epoch > 0 and schedule.step()"),
    "ONE_LOOP_FOR_ALL_SPLITS": (
        "loss = F.cross_entropy(model(x), y)  # GC703\n",
        'with torch.set_grad_enabled(split == "train"): loss = F.cross_entropy(model(x), y)\n',
    ),
}
"""What makes them right, or leaves them to somebody who may have done it."""


@pytest.mark.parametrize("name", FAULTS)
def test_it_is_told(name: str) -> None:
    source = HEAD + dedent(FAULTS[name])
    assert told(source) == marked(source)


@pytest.mark.parametrize("name", FAULTS)
def test_it_is_not_told_when_put_right(name: str) -> None:
    wrong, right = PUT_RIGHT[name]
    assert wrong in FAULTS[name]
    assert told(HEAD + FAULTS[name].replace(wrong, right)) == set()


COPIED_LINE = """
import torch
from torch import nn
import torch.nn.functional as F

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.drop, self.head = nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 1)

    def forward(self, x, y=None):
        return self.head(self.drop(self.body(x)))

def train_epoch(model, loader, optimizer):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()

def {name}(model, loader):
    model.train()
    total = 0.0
    for x, y in loader:
        loss = F.mse_loss(model({given}), y)
        total += loss.item()
    return total / len(loader)

def main(train_loader, val_loader):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(10):
        train_epoch(model, train_loader, optimizer)
        with torch.no_grad():
            print({name}(model, val_loader))
"""


def copied_line(name: str = "evaluate", given: str = "x", after: str = "") -> set[tuple[str, int]]:
    return told(COPIED_LINE.format(name=name, given=given) + after)


def test_an_evaluation_that_begins_as_the_training_does() -> None:
    assert {code for code, _ in copied_line()} == {"GC702"}


def test_train_mode_that_an_evaluation_may_want() -> None:
    assert copied_line(name="monte_carlo") == set()
    assert copied_line(given="x, y") == set()  # some models give their losses in train mode only
    assert copied_line(after="\ndef predict(model, x):\n    model.eval()\n    return model(x)\n") == set()
