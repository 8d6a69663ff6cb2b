"""Evaluations and modes that are right, though a piece of them looks forgotten."""

from __future__ import annotations

from textwrap import dedent

import pytest

from gradclinic.config import Config
from gradclinic.linting import lint
from tests.rules.scripts import codes_by_lint

HEAD = """
import torch
from torch import nn
import torch.nn.functional as F
from torchvision.models import resnet18
"""

FORCES_OF_AN_ENERGY = """
class Potential(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.1), nn.Linear(8, 1))

    def forward(self, positions):
        energy = self.layers(positions.requires_grad_()).sum()
        return -torch.autograd.grad(energy, positions, create_graph=self.training)[0]

model = Potential()
optimizer = torch.optim.Adam(model.parameters())
for epoch in range(10):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()
    model.eval()
    error = 0.0
    for x, y in held_out:
        error += F.mse_loss(model(x), y).item()
"""

MODE_AND_GRADIENTS_SWITCHED_TOGETHER = """
class Runner:
    def __init__(self):
        self.model = resnet18()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def train(self):
        self.training = True
        self.model.train()
        torch.set_grad_enabled(True)

    def eval(self):
        self.training = False
        self.model.eval()
        torch.set_grad_enabled(False)

    def run(self, loader):
        for x, y in loader:
            loss = F.cross_entropy(self.model(x), y)
            if self.training:
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()

    def fit(self, loader, held_out):
        for epoch in range(3):
            self.train()
            self.run(loader)
            self.eval()
            self.run(held_out)
"""

CONTEXT_OF_THE_PROJECT = """
from helpers import gradients
model = resnet18()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for split in ("train", "valid"):
        model.train(split == "train")
        for x, y in loaders[split]:
            with gradients(split == "train"):
                loss = F.cross_entropy(model(x), y)
            if split == "train":
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
"""

IMAGE_TRAINED_THROUGH_A_NETWORK = """
network = resnet18().eval()
image = torch.rand(1, 3, 64, 64, requires_grad=True)
optimizer = torch.optim.LBFGS([image])
for epoch in range(10):
    for target in targets:
        optimizer.zero_grad()
        F.mse_loss(network(image), target).backward()
        optimizer.step()
    for target in targets:
        print(F.mse_loss(network(image), target).item())
"""

HARDEST_OF_EACH_BATCH = """
model = resnet18()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    losses = []
    with torch.no_grad():
        for chunk, labels in zip(x.split(64), y.split(64)):
            losses.append(F.cross_entropy(model(chunk), labels, reduction="none"))
    hardest = torch.cat(losses).topk(16).indices
    optimizer.zero_grad()
    F.cross_entropy(model(x[hardest]), y[hardest]).backward()
    optimizer.step()
"""

MASKS_KEPT_RANDOM = """
def acquire(model, pool):
    model.train()
    scores = []
    with torch.no_grad():
        for x in pool:
            scores.append(torch.stack([model(x).softmax(-1) for _ in range(10)]).var(0))
    return torch.cat(scores).topk(100).indices

model = resnet18()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for turn in range(10):
    for x, y in labelled:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    labelled.add(acquire(model, pool))
"""

MODE_SET_BY_A_CALLBACK = """
class Trainer:
    def __init__(self, callbacks):
        self.model = resnet18()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.callbacks = callbacks

    def call(self, name):
        for callback in self.callbacks:
            getattr(callback, name)(self)

    def fit(self, loader, held_out):
        for epoch in range(10):
            self.call("on_epoch_start")
            for x, y in loader:
                self.optimizer.zero_grad()
                F.cross_entropy(self.model(x), y).backward()
                self.optimizer.step()
            self.validate(held_out)

    @torch.no_grad()
    def validate(self, held_out):
        self.model.eval()
        return sum((self.model(x).argmax(1) == y).sum().item() for x, y in held_out)
"""

GRADIENTS_OFF_FOR_THE_WHOLE_OBJECT = """
class Evaluator:
    @torch.inference_mode()
    def __call__(self, model, held_out):
        return self.measure(model, held_out)

    def measure(self, model, held_out):
        model.eval()
        right = 0
        for x, y in held_out:
            right += (model(x).argmax(1) == y).sum().item()
        return right

model = resnet18()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
evaluator = Evaluator()
for epoch in range(10):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    evaluator(model, held_out)
"""

DECORATED_BY_THE_PROJECT = """
from helpers import quietly

@quietly
def evaluate(model, held_out):
    model.eval()
    return [F.cross_entropy(model(x), y).item() for x, y in held_out]

model = resnet18()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(10):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    evaluate(model, held_out)
"""

CONTEXT_MADE_BEFORE = """
class Runner:
    def __init__(self):
        self.model = resnet18()
        self.optimizer = torch.optim.Adam(self.model.parameters())

    def quietly(self):
        return torch.no_grad()

    def fit(self, loader, held_out):
        for epoch in range(9):
            self.model.train()
            for x, y in loader:
                self.optimizer.zero_grad()
                F.cross_entropy(self.model(x), y).backward()
                self.optimizer.step()
            context = torch.inference_mode()
            with context:
                self.evaluate(held_out)
            with self.quietly():
                self.evaluate(held_out)

    def evaluate(self, held_out):
        self.model.eval()
        right = 0
        for x, y in held_out:
            right += (self.model(x).argmax(1) == y).sum().item()
        return right
"""

FROZEN_BY_A_FUNCTION_OUT_OF_SIGHT = """
from helpers import toggle_grad
model = resnet18()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(10):
    toggle_grad(model, True)
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    toggle_grad(model, False)
    model.eval()
    for x, y in held_out:
        print(F.cross_entropy(model(x), y).item())
"""

PROGRAMS = {name: text for name, text in list(globals().items()) if name.isupper() and name != "HEAD"}


@pytest.mark.parametrize("name", PROGRAMS)
def test_nothing_is_said(name: str) -> None:
    assert codes_by_lint(HEAD + dedent(PROGRAMS[name])) == []


RESETS = """
import torch
from network import Net

model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

@torch.no_grad()
def validate(data):
    model.eval()
    return sum(model(x).mean().item() for x in data)

for fold in folds:
    model.reset()
    for x in fold.data:
        optimizer.zero_grad()
        model(x).mean().backward()
        optimizer.step()
    validate(fold.held_out)
"""
NETWORK = """
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.1))

    def forward(self, x):
        return self.layers(x)

    def reset(self):
        DO
"""


NAMED_BY_A_SETTING = """
import torch
from network import REGISTRY

model = REGISTRY["net"]()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(9):
    for x, y in loader:
        optimizer.zero_grad()
        (model(x) - y).square().mean().backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        for x, y in held_out:
            print((model(x) - y).square().mean().item())
"""


def test_where_no_file_of_the_project_has_a_layer_that_minds_the_mode_it_does_not_matter(
    tmp_path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(NAMED_BY_A_SETTING)
    text = NETWORK.replace("DO", "pass") + "\nREGISTRY = {'net': Net}\n"
    for network, told in ((text, ["GC701"]), (text.replace("nn.Dropout(0.1)", "nn.ReLU()"), [])):
        (tmp_path / "network.py").write_text(network)
        found = lint(["train.py"], Config(), jobs=1).findings
        assert [finding.code for finding in found] == told


def test_a_method_of_the_models_own_file_tells_whether_it_sets_the_mode(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(RESETS)
    for does, told in (("self.train()", []), ("self.state = None", ["GC701"])):
        (tmp_path / "network.py").write_text(NETWORK.replace("DO", does))
        found = lint(["train.py"], Config(), jobs=1).findings
        assert [finding.code for finding in found] == told
