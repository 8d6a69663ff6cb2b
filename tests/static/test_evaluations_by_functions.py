"""Evaluations that are functions of their own, or the loop of the training gone through by one; and the same
where gradients are off and the mode is set."""

from __future__ import annotations

import pytest

from gradclinic.engine import judge
from gradclinic.findings import Severity
from gradclinic.static import observe_source
from tests.static.reading import marked, told

HEAD = """
import torch
from torch import nn
import torch.nn.functional as F

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.norm = nn.Linear(4, 4), nn.BatchNorm1d(4)

    def forward(self, x):
        return self.norm(self.body(x))
"""
EPOCHS = """
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

def {signature}:
    correct = 0
    for x, y in {data}:
        correct += (model(x).argmax(1) == y).sum().item(){marks}
    return correct

for epoch in range(10):
    model.train()
    for x, y in train_loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    {call}
"""


@pytest.mark.parametrize(
    ("signature", "data", "call"),
    [
        ("test()", "test_loader", "print(test())"),
        ("validate(epoch)", "loader", "validate(epoch)"),
        ("evaluate(model, loader)", "loader", "score = evaluate(model, val_loader)"),
    ],
)
def test_a_function_that_only_measures(signature: str, data: str, call: str) -> None:
    places = {"signature": signature, "data": data, "call": call}
    source = HEAD + EPOCHS.format(marks="  # GC703", **places)
    ((_, line),) = marked(source)
    assert told(source) == {("GC702", line), ("GC703", line)}
    right = source.replace("    correct = 0", "    model.eval()\n    correct = 0")
    assert told(right.replace(f"def {signature}", f"@torch.no_grad()\ndef {signature}")) == set()


def test_a_function_that_adapts_statistics_is_no_evaluation() -> None:
    source = EPOCHS.format(signature="update_bn()", data="train_loader", call="update_bn()", marks="")
    assert told(HEAD + source) == set()


ONE_LOOP_FOR_BOTH = """
class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def train(self, epoch):
        self.iteration(self.train_data)

    def test(self, epoch):
        {test}

    def iteration(self, data, train=True):
        for x, y in data:
            loss = F.cross_entropy(self.model(x), y)  # GC703
            if train:
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
"""


def notes(source: str) -> set[tuple[str, int]]:
    return {
        (finding.code, finding.location.line)
        for finding in judge([observe_source(source, "train.py")])
        if finding.location and finding.severity is Severity.INFO
    }


def test_a_loop_that_trains_is_gone_through_to_measure() -> None:
    """A note: whoever calls it may have switched gradients off, and set the mode."""
    source = HEAD + ONE_LOOP_FOR_BOTH.format(test="self.iteration(self.test_data, train=False)")
    assert notes(source) == marked(source)
    assert told(source) == set()


@pytest.mark.parametrize(
    "test",
    [
        "with torch.no_grad():\n            self.iteration(self.test_data, train=False)",
        "self.iteration(self.test_data)",
    ],
    ids=["without gradients", "trained on as well"],
)
def test_nothing_is_noted(test: str) -> None:
    source = HEAD + ONE_LOOP_FOR_BOTH.format(test=test)
    assert notes(source) == told(source) == set()


ONLY_THE_LOSS_WITHOUT_GRADIENTS = """
def run(model, loader, optimizer, train):
    if train:
        model.train()
    else:
        model.eval()
    for x, y in loader:
        {forward}
        if train:
            loss = F.cross_entropy(out, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        else:
            with torch.no_grad():
                loss = F.cross_entropy(out, y)

def main(model, train_loader, val_loader, optimizer):
    for epoch in range(10):
        run(model, train_loader, optimizer, True)
        run(model, val_loader, optimizer, False)
"""


def test_the_loss_alone_is_computed_without_gradients() -> None:
    source = HEAD + ONLY_THE_LOSS_WITHOUT_GRADIENTS.format(forward="out = model(x)  # GC703")
    assert told(source) == marked(source)


@pytest.mark.parametrize(
    "forward",
    [
        "with torch.set_grad_enabled(train):\n            out = model(x)",
        "off = torch.enable_grad if train else torch.no_grad\n        with off():\n            out = model(x)",
    ],
)
def test_gradients_are_switched_for_the_forward(forward: str) -> None:
    assert told(HEAD + ONLY_THE_LOSS_WITHOUT_GRADIENTS.format(forward=forward)) == set()


A_PART_THAT_DECODES = """
from models import Tagger

def evaluate(model, loader):
    for x, mask in loader:
        model.eval()  # GC701
        with torch.no_grad():
            scores = model(x)
            tags = model.crf.{method}(scores, mask)

def main(loader, dev_loader):
    model = Tagger()
    model.drop = nn.Dropout(0.5)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model.train()
    for epoch in range(10):
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        evaluate(model, dev_loader)
"""


def test_a_part_that_decodes_leaves_the_mode_as_it_is() -> None:
    source = HEAD + A_PART_THAT_DECODES.format(method="decode")
    assert told(source) == marked(source)
    assert told(HEAD + A_PART_THAT_DECODES.format(method="leave_eval")) == set()
