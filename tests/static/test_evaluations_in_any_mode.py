"""Evaluations that nobody put into a mode or under no_grad, each with what makes it right."""

from __future__ import annotations

from textwrap import dedent

import pytest

from tests.static.reading import marked, told

HEAD = """
import torch
from torch import nn
import torch.nn.functional as F
from torchvision import models

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 4), nn.Dropout(), nn.Linear(4, 2))

    def forward(self, x):
        return self.layers(x)
"""

NEITHER_IN_A_SCRIPT = """
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(10):
    for x, y in trainloader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    correct = 0
    for x, y in testloader:
        out = model(x)  # GC702, GC703
        correct += (out.argmax(1) == y).sum().item()
"""

BATCHES_ASKED_FOR = """
model = nn.LSTM(4, 2)
optimizer = torch.optim.Adamax(model.parameters())
loss_function = nn.CrossEntropyLoss()
for epoch in range(10):
    i = 0
    while i < len(train_data):
        x, y = get_batch(train_data, i)
        i += 32
        model.zero_grad()
        loss_function(model(x), y).backward()
        optimizer.step()
    i = total_loss = 0
    while i < len(val_data):
        x, y = get_batch(val_data, i)
        i += 32
        total_loss += loss_function(model(x), y).item()  # GC703
"""

PHASES_OF_ONE_LOOP = """
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(10):
    for phase in ["train", "val"]:
        running = 0.0
        for x, y in loaders[phase]:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)  # GC702, GC703
            if phase == "train":
                loss.backward()
                optimizer.step()
            running += loss.item()
"""

PHASES_WITHOUT_GRADIENTS = """
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(10):
    for phase in ["train", "val"]:
        for x, y in loaders[phase]:
            optimizer.zero_grad()
            with torch.set_grad_enabled(phase == "train"):
                loss = F.cross_entropy(model(x), y)  # GC702
                if phase == "train":
                    loss.backward()
                    optimizer.step()
"""

AN_OPTIMIZER_OR_NONE = """
def run_epoch(model, loader, optimizer=None):
    total = 0
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)  # GC702, GC703
        if optimizer is not None:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        total += loss.item()
    return total

def main(train_loader, val_loader):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(10):
        run_epoch(model, train_loader, optimizer)
        print(run_epoch(model, val_loader))
"""

TRAIN_MODE_FOR_ALL = """
class Trainer:
    def __init__(self, net):
        self.model = Net()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def shared_loop(self, loader, mode):
        self.model.train()
        for batch in loader:
            self.optimizer.zero_grad()
            loss = self.model.compute_loss(batch)  # GC702, GC703
            if mode == "train":
                loss.backward()
                self.optimizer.step()
            print(loss.item())

    def fit(self, train_loader, val_loader):
        for epoch in range(10):
            self.shared_loop(train_loader, mode="train")
            self.shared_loop(val_loader, mode="val")
"""

MADE_BY_TORCHVISION = """
model = models.resnet18(weights=None)
model.fc = nn.Linear(512, 10)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(10):
    for x, y in trainloader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    correct = 0
    with torch.no_grad():
        for x, y in testloader:
            correct += (model(x).argmax(1) == y).sum().item()  # GC702
"""

ALL_DATA_AT_ONCE = """
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(10):
    optimizer.zero_grad()
    F.cross_entropy(model(x_train), y_train).backward()
    optimizer.step()
    with torch.no_grad():
        val_loss = F.cross_entropy(model(x_val), y_val)  # GC702
"""

COUNTED_IN_A_GENERATOR = """
def accuracy(model, loader):
    model.eval()
    return sum((model(x).argmax(1) == y).float().mean().item() for x, y in loader)  # GC703

def main(train_loader, val_loader):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(10):
        model.train()
        for x, y in train_loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        print(accuracy(model, val_loader))
"""

PRECISION_OF_BOXES = """
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(10):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    model.eval()
    for x, y in held_out:
        ap_calculator.step(parse(model(x)), y)  # GC703
"""

STOPS_BY_A_FLAG = """
class Trainer:
    def __init__(self, model, loader, held_out, config):
        self.model, self.loader, self.held_out = model, loader, held_out
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        self.steps, self.config, self.finished = 0, config, False

    def check(self):
        if self.steps >= self.config["most"]:
            self.finished = True

    def run(self):
        while True:
            self.model.train()
            for x, y in self.loader:
                self.optimizer.zero_grad()
                F.cross_entropy(self.model(x), y).backward()
                self.optimizer.step()
                self.steps += 1
                self.check()
                if self.finished:
                    return
            self.model.eval()
            for x, y in self.held_out:
                print(F.cross_entropy(self.model(x), y).item())  # GC703
"""

FAULTS = {name: text for name, text in globals().items() if isinstance(text, str) and "  # GC70" in text}
QUIETLY = "with torch.no_grad(): "
PUT_RIGHT = {
    "NEITHER_IN_A_SCRIPT": ("in testloader", "in unlabelled"),
    "BATCHES_ASKED_FOR": ("        total_loss +=", f"        {QUIETLY}total_loss +="),
    "PHASES_OF_ONE_LOOP": (
        "loss = F",
        'with torch.set_grad_enabled(model.train(phase == "train").training): loss = F',
    ),
    "PHASES_WITHOUT_GRADIENTS": (
        "        for x, y in loaders",
        '        model.train(phase == "train")\n        for x, y in loaders',
    ),
    "AN_OPTIMIZER_OR_NONE": (
        "print(run_epoch(model, val_loader))",
        f"model.eval()\n        {QUIETLY}print(run_epoch(model, val_loader))\n        model.train()",
    ),
    "TRAIN_MODE_FOR_ALL": ("loop(val_loader", "loop(unlabelled"),
    "MADE_BY_TORCHVISION": ("    correct = 0\n", "    switch_to_eval(model)\n"),
    "ALL_DATA_AT_ONCE": ("model(x_val), y_val", "model(x_hard), y_hard"),
    "COUNTED_IN_A_GENERATOR": ("def accuracy", "@torch.no_grad()\ndef accuracy"),
    "PRECISION_OF_BOXES": ("    model.eval()\n", "    model.eval()\n    torch.set_grad_enabled(False)\n"),
    "STOPS_BY_A_FLAG": ("print(F", f"{QUIETLY}print(F"),
}
"""What makes them right, or leaves a doubt that they are wrong."""


@pytest.mark.parametrize("name", FAULTS)
def test_it_is_told(name: str) -> None:
    source = HEAD + dedent(FAULTS[name])
    assert told(source) == {(code, line) for codes, line in marked(source) for code in codes.split(", ")}


@pytest.mark.parametrize("name", FAULTS)
def test_it_is_not_told_when_put_right(name: str) -> None:
    wrong, right = PUT_RIGHT[name]
    assert wrong in FAULTS[name]
    assert told(HEAD + FAULTS[name].replace(wrong, right)) == set()
