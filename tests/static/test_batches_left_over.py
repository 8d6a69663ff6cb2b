"""What the end of an epoch leaves of a window, in a function that clears at its begin and in long windows."""

from __future__ import annotations

import pytest

from gradclinic.engine import judge
from gradclinic.static import observe_source
from tests.static.reading import TORCH

ONE_EPOCH = """
def train_one_epoch(model, loader, optimizer, k):
    {first}
    for i, (x, y) in enumerate(loader):
        (F.cross_entropy(model(x), y) / k).backward()
        if {full}:
            optimizer.step()
            optimizer.zero_grad()
    {last}
"""
PLAIN = {"first": "optimizer.zero_grad()", "full": "(i + 1) % k == 0", "last": "return i"}
LOST = [{}, {"last": "print(i)"}, {"first": "model.train(); optimizer.zero_grad(set_to_none=True)"}]
KEPT = [
    {"first": "pass"},  # for its next call, if it is called again
    {"full": "(i + 1) % k == 0 or i + 1 == len(loader)"},
    {"full": "(i + 1) % k == 0 or i >= len(loader) - 1"},
    {"last": "optimizer.step()"},
    {"last": "if (i + 1) % k != 0:\n        optimizer.step()"},
    {"last": "finish(optimizer)"},
    {"full": "True"},
]
LONG = """
class Trainer:
    def __init__(self, model, loader, k=4):
        self.model, self.loader, self.k = model, loader, k
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        self.seen = 0

    def train_epoch(self):
        {first}
        for i, (x, y) in enumerate(self.loader):
            (F.cross_entropy(self.model(x), y) / self.k).backward()
            self.seen += 1
            if {full}:
                self.optimizer.step()
                self.optimizer.zero_grad()
        {last}

    def fit(self, epochs):
        for epoch in range(epochs):
            self.train_epoch()

Trainer(nn.Linear(2, 2), loader).fit(10)
"""
OF_FOUR = {"first": "self.optimizer.zero_grad()", "full": "(i + 1) % self.k == 0", "last": "pass"}


def codes(source: str) -> list[str]:
    return [finding.code for finding in judge([observe_source(TORCH + source, "train.py")])]


@pytest.mark.parametrize("way", LOST, ids=str)
def test_what_is_left_over_is_cleared_by_the_next_call(way: dict[str, str]) -> None:
    assert codes(ONE_EPOCH.format(**PLAIN | way)) == ["GC108"]


@pytest.mark.parametrize("way", KEPT, ids=str)
def test_nothing_is_lost(way: dict[str, str]) -> None:
    assert codes(ONE_EPOCH.format(**PLAIN | way)) == []


def test_who_calls_it_may_step_what_is_left_over() -> None:
    caller = """
def main(model, loader, optimizer, args):
    for epoch in range(args.epochs):
        train_one_epoch(model, loader, optimizer, args.k)
        {after}
"""
    written = ONE_EPOCH.format(**PLAIN)
    assert codes(written + caller.format(after="pass")) == ["GC108"]
    assert codes(written + caller.format(after="optimizer.step()")) == []


@pytest.mark.parametrize("way", [{}, {"first": "pass"}], ids=str)
def test_of_long_windows_an_epoch_holds_but_one(way: dict[str, str]) -> None:
    assert codes(LONG.format(**OF_FOUR | way)) == ["GC108"]


@pytest.mark.parametrize(
    "way",
    [
        {"full": "self.seen % self.k == 0", "first": "pass"},
        {"full": "(i + 1) % self.k == 0 or i + 1 == len(self.loader)"},
        {"last": "self.optimizer.step()"},
    ],
    ids=str,
)
def test_long_windows_may_be_whole(way: dict[str, str]) -> None:
    assert codes(LONG.format(**OF_FOUR | way)) == []
