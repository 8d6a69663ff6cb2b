"""Loops that train in one phase and evaluate in another, over data from a dictionary."""

from __future__ import annotations

import pytest

from tests.static.reading import TORCH, marked, told

PROGRAM = """
from torch.utils.data import DataLoader
from torchvision import models

loaders = {loaders}

def train_model(model, optimizer, epochs=25):
    for epoch in range(epochs):
        for phase in ["train", "val"]:
            {mode}
            total = 0.0
            for x, y in loaders[phase]:
                optimizer.zero_grad()
                with {context}:
                    loss = F.cross_entropy(model(x), y){fault}
                    if phase == "train":
                        loss.backward()
                        optimizer.step()
                total += loss.item()

net = models.resnet18()
train_model(net, torch.optim.SGD(net.parameters(), lr=0.1))
"""
LOADERS = [
    "{name: DataLoader(sets[name], shuffle=True) for name in ['train', 'val']}",
    "{'train': DataLoader(train_set), 'val': DataLoader(other_set)}",
    "{'train': train_loader, 'val': val_loader}",
]
RIGHT = "model.train() if phase == 'train' else model.eval()"
QUIET = "torch.set_grad_enabled(phase == 'train')"


@pytest.mark.parametrize("loaders", LOADERS)
@pytest.mark.parametrize(
    ("mode", "context", "fault"),
    [
        (RIGHT, QUIET, ""),
        ("model.train(phase == 'train')", QUIET, ""),
        ("model.train()", QUIET, "  # GC702"),
        ("if phase == 'train': model.train()", QUIET, "  # GC702"),
        (RIGHT, "autocast()", "  # GC703"),
    ],
)
def test_a_phase_that_evaluates(loaders: str, mode: str, context: str, fault: str) -> None:
    source = TORCH + PROGRAM.format(loaders=loaders, mode=mode, context=context, fault=fault)
    assert told(source) == marked(source)


@pytest.mark.parametrize("loaders", LOADERS)
def test_a_phase_that_trains_in_whatever_mode(loaders: str) -> None:
    source = PROGRAM.format(loaders=loaders, mode="model.train()", context="autocast()", fault="")
    assert told(TORCH + source.replace('if phase == "train":', "if True:")) == set()


WITHIN = """
def train(model: nn.Module, X_train, X_val, steps):
    model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(), nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for number, (x, y) in enumerate(X_train):
        model.train()
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        if number in steps:
            {mode}
            hits = 0
            for x, y in {over}:
                with {context}:
                    hits += (model(x).argmax(1) == y).sum().item(){fault}
"""


@pytest.mark.parametrize(
    ("mode", "over", "context", "fault"),
    [
        ("pass", "X_val", "torch.no_grad()", "  # GC702"),
        ("model.eval()", "X_val", "autocast()", "  # GC703"),
        ("model.eval()", "X_val", "torch.no_grad()", ""),
        ("pass", "zip(x.split(4), y.split(4))", "torch.no_grad()", ""),
    ],
)
def test_a_pass_over_held_out_data_between_the_batches(
    mode: str, over: str, context: str, fault: str
) -> None:
    source = TORCH + WITHIN.format(mode=mode, over=over, context=context, fault=fault)
    assert told(source) == marked(source)
