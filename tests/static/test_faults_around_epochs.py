"""Faults that show only around the pass over the data: before it, between two of them, or in what it calls.

Beside each, the nearest program that is right.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from gradclinic.engine import judge
from gradclinic.static import observe_source
from tests.rules.scripts import codes_by_lint
from tests.static.reading import TORCH, marked, told

CLEARED_ONCE_PER_EPOCH = """
def train(model, loader, optimizer):
    model.train()
    optimizer.zero_grad()
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        loss.backward()  # GC101
        optimizer.step()

def run(model, loader, optimizer, epochs):
    for epoch in range(epochs):
        train(model, loader, optimizer)
"""

EPOCHS_FROM_ONE_TO_ANOTHER = """
from tqdm import trange

def run(model, loader, args):
    optimizer = torch.optim.AdamW(model.parameters())
    for epoch in trange(0, int(args.epochs), desc="Epoch"):
        for x, y in loader:
            F.cross_entropy(model(x), y).backward()  # GC101
            optimizer.step()
"""

A_SCHEDULE_ON_TOP_OF_TORCHS = """
from torch.optim.lr_scheduler import _LRScheduler

class Slow(_LRScheduler):
    def __init__(self, optimizer, total):
        self.total = total
        super().__init__(optimizer)

    def get_lr(self):
        return [base * (1 - self.last_epoch / self.total) for base in self.base_lrs]

class Slower(Slow):
    pass

def run(model, loader, total):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = Slower(optimizer, total)
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        schedule.step()  # GC112
        optimizer.step()
"""

A_HEAD_APPLIED_BY_A_FUNCTION = """
from predicting import predict

def run(encoder, head, loader):
    optimizer = torch.optim.AdamW(head.parameters())
    for x, y in loader:
        logits = predict(head, encoder(x))
        F.mse_loss(logits, y).backward()  # GC101
        optimizer.step()
"""

A_LOSS_THAT_IS_A_LAMBDA = """
def train(model, loader, optimizer, loss):
    every = 4
    for i, (x, y) in enumerate(loader):
        loss(model(x), y).backward()  # GC106
        if (i + 1) % every == 0:
            optimizer.step()
            optimizer.zero_grad()

def run(model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    train(model, loader, optimizer, lambda x, y: F.cross_entropy(x, y))
"""

A_SCHEDULE_AT_THE_HEAD_OF_A_LATER_EPOCH = """
def train(model, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()

def run(model, head, loader, epochs, warm):
    first = torch.optim.SGD(head.parameters(), lr=0.1)
    second = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.StepLR(second, 5)
    for epoch in range(epochs):
        if epoch < warm:
            train(model, loader, first)
        else:
            schedule.step()  # GC112
            train(model, loader, second)
        if epoch % 10 == 0:
            for again in range(20):
                train(model, loader, first)
"""

A_CLIP_IN_A_BACKWARD_OF_ITS_OWN = """
class Weighted:
    def __init__(self, weights, limit):
        self.weights = weights
        self.limit = limit

    def backward(self, losses, parameters):
        loss = (losses * self.weights).sum()
        if self.limit > 0:
            torch.nn.utils.clip_grad_norm_(parameters, self.limit)  # GC110
        loss.backward()
        return loss
"""

MANY = "\n".join(f"        if args.flag{i}:\n            self.optimizer.note_{i}(args)" for i in range(60))
MORE_PATHS_THAN_CAN_BE_WALKED = f"""
class Trainer:
    def __init__(self, model, optimizer):
        self.model = model
        self.optimizer = optimizer

    def fit(self, args, loader):
{MANY}
        for epoch in range(args.epochs):
            self.train_epoch(loader, args.every)

    def train_epoch(self, loader, every):
        for i, (x, y) in enumerate(loader):
            self.update(i, F.cross_entropy(self.model(x), y) / every, every)

    def update(self, i, loss, every):
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)  # GC111
        if (i + 1) % every == 0:
            self.optimizer.step()
            self.optimizer.zero_grad()
"""

FAULTS = {name: text for name, text in list(globals().items()) if name.isupper() and "# GC" in text}
MENDED = {
    "a schedule that begins one earlier": (
        "A_SCHEDULE_ON_TOP_OF_TORCHS",
        "        super().__init__(optimizer)\n",
        "        super().__init__(optimizer)\n        self.last_epoch = -1\n",
    ),
    "a schedule that advances in a way of its own": (
        "A_SCHEDULE_ON_TOP_OF_TORCHS",
        "    def get_lr(self):",
        """    def step(self):
        self.last_epoch += 1
        for group, rate in zip(self.optimizer.param_groups, self.get_lr()):
            group["lr"] = rate

    def get_lr(self):""",
    ),
    "cleared for every batch": (
        "CLEARED_ONCE_PER_EPOCH",
        "        optimizer.step()",
        "        optimizer.step()\n        optimizer.zero_grad()",
    ),
    "cleared after the head": (
        "A_HEAD_APPLIED_BY_A_FUNCTION",
        "        optimizer.step()",
        "        optimizer.step()\n        head.zero_grad()",
    ),
    "a lambda that divides": ("A_LOSS_THAT_IS_A_LAMBDA", "_entropy(x, y))", "_entropy(x, y) / 4)"),
    "a lambda that sums": (
        "A_LOSS_THAT_IS_A_LAMBDA",
        "F.cross_entropy(x, y))",
        'F.cross_entropy(x, y, reduction="sum"))',
    ),
    "a schedule after the epoch": (
        "A_SCHEDULE_AT_THE_HEAD_OF_A_LATER_EPOCH",
        "            schedule.step()  # GC112\n            train(model, loader, second)",
        "            train(model, loader, second)\n            schedule.step()",
    ),
    "a schedule that waits for steps": (
        "A_SCHEDULE_AT_THE_HEAD_OF_A_LATER_EPOCH",
        "StepLR(second, 5)",
        "StepLR(first, 5)",
    ),
    "a clip after the backward": (
        "A_CLIP_IN_A_BACKWARD_OF_ITS_OWN",
        "        loss = (losses * self.weights).sum()",
        "        loss = (losses * self.weights).sum()\n        loss.backward(retain_graph=True)",
    ),
    "a clip at the end of the window": (
        "MORE_PATHS_THAN_CAN_BE_WALKED",
        "clip_grad_norm_(self.model.parameters(), 1.0)",
        "get_total_norm([1.0])",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_it_is_told(name: str) -> None:
    source = TORCH + FAULTS[name]
    assert told(source) == marked(source)


@pytest.mark.parametrize("what", MENDED)
def test_it_is_not_told_once_mended(what: str) -> None:
    name, faulty, right = MENDED[what]
    assert faulty in FAULTS[name]
    assert told(TORCH + FAULTS[name].replace(faulty, right)) == set()


@pytest.mark.parametrize(
    "waits", ["epoch", "epoch >= warm", "epoch > 5", "not epoch < warm", "epoch > warm and decay"]
)
def test_a_schedule_may_wait_at_the_head_of_an_epoch(waits: str) -> None:
    source = f"""
def run(model, loader, epochs, warm, decay):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 5)
    for epoch in range(epochs):
        if {waits}:
            schedule.step()
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
"""
    assert codes_by_lint(TORCH + source) == []
    assert codes_by_lint(TORCH + source.replace(f"if {waits}:", "if epoch < warm:")) == ["GC112"]


LOSSES = """
import torch
from torch import nn
import torch.nn.functional as F

class FocalLoss(nn.Module):
    def forward(self, x, y):
        each = F.cross_entropy(x, y, reduction="none")
        return ((1 - torch.exp(-each)) ** 2 * each).mean()

class SummedLoss(nn.Module):
    def forward(self, x, y):
        return (x - y).abs().sum()

class LossOfEach(nn.Module):
    def forward(self, xs, ys):
        loss = 0
        for x, y in zip(xs, ys):
            loss = loss + F.mse_loss(x, y)
        return loss

class SharedLoss(nn.Module):
    def __init__(self, steps):
        super().__init__()
        self.steps = steps

    def forward(self, x, y):
        return F.mse_loss(x, y) / self.steps

def distance_loss(x, y):
    return (x - y).pow(2).sum(dim=1).mean()

def own_crossentropy(x, y):
    return torch.logsumexp((1 - 2 * y) * x, dim=-1).mean()

def summed_crossentropy(x, y):
    return torch.logsumexp((1 - 2 * y) * x, dim=-1).sum()
"""
WINDOWS = """
from losses import {loss}

def run(model, loader, optimizer, args):
    {criterion}
    for i, (x, y) in enumerate(loader):
        loss = criterion(model(x), y)
        loss.backward()
        if (i + 1) % args.every == 0 or i + 1 == len(loader):
            optimizer.step()
            optimizer.zero_grad()
"""


@pytest.mark.parametrize(
    ("loss", "codes"),
    [
        ("FocalLoss", ["GC106"]),
        ("distance_loss", ["GC106"]),
        ("own_crossentropy", ["GC106"]),
        ("summed_crossentropy", []),
        ("SummedLoss", []),
        ("LossOfEach", []),
        ("SharedLoss", []),
    ],
)
def test_a_loss_of_another_file_may_be_a_mean(loss: str, codes: list[str], tmp_path: Path) -> None:
    (tmp_path / "losses.py").write_text(LOSSES)
    made = f"criterion = {loss}()" if loss[0].isupper() else "pass"
    text = WINDOWS.format(loss=loss, criterion=made)
    text = text if loss[0].isupper() else text.replace("criterion(", f"{loss}(")
    seen = observe_source(text, str(tmp_path / "train.py"))
    assert [finding.code for finding in judge([seen])] == codes
