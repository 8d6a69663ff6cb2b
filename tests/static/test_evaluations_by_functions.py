"""Evaluations that are functions of their own, or the loop of the training gone through by one; and the same
where gradients are off and the mode is set."""

from __future__ import annotations

import pytest

from gradclinic.engine import judge
from gradclinic.findings import Severity
from gradclinic.static import observe_source
from tests.static.reading import TORCH, marked, told

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
        "on = torch.enable_grad if train else torch.no_grad\n        with on():\n            out = model(x)",
    ],
)
def test_gradients_are_switched_for_the_forward(forward: str) -> None:
    assert told(HEAD + ONLY_THE_LOSS_WITHOUT_GRADIENTS.format(forward=forward)) == set()


ACCURACY = """
def accuracy_of(net, loader):
    correct = 0
    for x, y in loader:
        correct += (net(x).argmax(1) == y).sum().item()
    return correct

model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(10):
    for x, y in train_loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    print(accuracy_of(model, CALLED))
"""


def test_data_is_held_out_by_the_name_that_the_caller_gives_it() -> None:
    held_out, trained_on = (
        HEAD + ACCURACY.replace("CALLED", data) for data in ("test_loader", "train_loader")
    )
    assert {code for code, _ in told(held_out)} == {"GC702", "GC703"}
    assert told(trained_on) == set()


LOSS_OBJECTS = """
class Compute:
    def __init__(self, generator, criterion, optimizer=None):
        self.generator, self.criterion, self.optimizer = generator, criterion, optimizer

    def __call__(self, x, y):
        loss = self.criterion(self.generator(x), y)
        if self.optimizer is not None:
            loss.backward()
            self.optimizer.step()
            self.optimizer.zero_grad()
        return loss.item()

def run_epoch(data, model, compute):
    total = 0
    for batch in data:
        out = model.forward(batch.source)  # GC703
        total += compute(out, batch.target)
    return total

for epoch in range(10):
    model.train()
    run_epoch(train_iter, model, Compute(model.generator, criterion, optimizer))
    model.eval()
    run_epoch(valid_iter, model, Compute(model.generator, criterion))
"""


def test_the_loss_knows_whether_it_trains() -> None:
    source = HEAD + LOSS_OBJECTS
    assert told(source) == marked(source)
    last = "    run_epoch(valid_iter"
    assert told(source.replace(last, f"    with torch.no_grad():\n    {last}")) == set()
    adapts = source.replace("(model.generator, criterion))", "(model.generator, criterion, optimizer))")
    assert told(adapts) == set()


LOSSES_OF_THE_MODEL = """
class Trainer:
    def train_epoch(self):
        self.model.train()
        for batch in self.train_loader:
            loss = self.model.loss(batch)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

    def val_epoch(self):
        self.model.eval()
        total = 0
        for batch in self.val_loader:
            total += self.model.METHOD(batch).item()  # GC703
        return total

    def run(self):
        for epoch in range(10):
            self.train_epoch()
            self.val_epoch()
"""


def test_a_model_that_gives_its_loss() -> None:
    source = HEAD + LOSSES_OF_THE_MODEL.replace("METHOD", "loss")
    assert told(source) == marked(source)
    assert told(HEAD + LOSSES_OF_THE_MODEL.replace("METHOD", "predict")) == set()
    assert told(HEAD + LOSSES_OF_THE_MODEL.replace("METHOD", "reset_loss")) == set()


ASKS_FOR_THE_MODE = """
class Learner:
    def __init__(self, model, optimizer, data):
        self.model, self.optimizer, self.data = model, optimizer, data

    def one_batch(self, x, y):
        loss = F.cross_entropy(self.model(x), y)  # GC703
        if self.model.training:
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        self.total += loss.item()

    def fit(self):
        for epoch in range(10):
            self.model.train()
            for x, y in self.data.train_loader:
                self.one_batch(x, y)
            self.model.eval()
            BEFORE
            for x, y in self.data.valid_loader:
                self.one_batch(x, y)
"""


def test_the_mode_tells_whether_it_trains() -> None:
    source = HEAD + ASKS_FOR_THE_MODE.replace("BEFORE", "pass")
    assert told(source) == marked(source)
    assert told(HEAD + ASKS_FOR_THE_MODE.replace("BEFORE", "self.model.train()")) == set()


BY_A_GENERATOR = """
from contextlib import contextmanager

@contextmanager
def NAME(model):
    before = model.training
    try:
        model.eval()
        yield model
    finally:
        if before:
            model.train()
"""
BY_A_CLASS = """
class NAME:
    def __init__(self, model):
        self.model = model

    def __enter__(self):
        self.before = self.model.training
        self.model.eval()

    def __exit__(self, *args):
        self.model.train(self.before)
"""


@pytest.mark.parametrize("manager", [BY_A_GENERATOR, BY_A_CLASS])
@pytest.mark.parametrize("name", ["evaluating", "in_another_mode"])
def test_a_context_manager_sets_the_mode_and_puts_it_back(manager: str, name: str) -> None:
    loop = EPOCHS.format(signature="test()", data="test_loader", call="test()", marks="")
    begin = "    for x, y in test_loader:\n        correct"
    within = f"    with {name}(model), torch.no_grad():\n      for x, y in test_loader:\n        correct"
    source = HEAD + manager.replace("NAME", name) + loop.replace(begin, within)
    assert told(source) == set()
    assert {code for code, _ in told(source.replace(f"{name}(model), ", ""))} == {"GC702"}


MEASURED_BY = """
model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def evaluate(model, loader):
    {mode}
    result = 0
    with torch.no_grad():
        for x, y in loader:
            {measured}
    return result
for epoch in range(9):
    model.train()
    for x, y in train_loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    print(evaluate(model, test_loader))
"""


@pytest.mark.parametrize(
    "measured",
    [
        "result += (model(x).argmax(1) == y).sum().item()",
        "hits = model(x).eq(y)",
        "mIoU = mean_iou(model(x), y)",
    ],
)
def test_an_evaluation_may_go_by_other_names_of_what_it_measures(measured: str) -> None:
    for mode, codes in [("pass", {"GC702"}), ("model.eval()", set())]:
        source = TORCH + MEASURED_BY.format(measured=measured, mode=mode)
        assert {code for code, _ in told(source)} == codes


SAVED_AFTER_EACH_PASS = """
class Solver:
    def __init__(self, model, optimizer):
        self.model, self.optimizer = model, optimizer

    def fit(self):
        for epoch in range(9):
            self.model.train()
            self.run_epoch()
            self.model.eval()
            score = self.run_epoch(cross_valid=True)
            if score < self.best:
                torch.save({kept}, self.path)

    def run_epoch(self, cross_valid=False):
        loader = self.tr_loader if not cross_valid else self.cv_loader
        total = 0
        for x, y in loader:
            loss = F.cross_entropy(self.model(x), y)  # GC703
            if not cross_valid:
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            {each}
            total += loss.item()
        return total
"""


def test_who_saves_the_model_when_a_pass_is_over_trains_nothing() -> None:
    saved = {"kept": "self.model.module.serialize(self.model.module, self.optimizer, epoch)"}
    source = HEAD + SAVED_AFTER_EACH_PASS.format(each="pass", **saved)
    assert told(source) == marked(source)
    unseen = source.replace("            pass\n", "            refine(loss, self.optimizer)\n")
    assert told(unseen) == set()
    right = source.replace("score = self", "with torch.no_grad(): score = self")
    assert told(right) == set()
