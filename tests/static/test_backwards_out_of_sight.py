"""Files that step and go backward nowhere: a call that is given what may be a loss might hide it."""

from __future__ import annotations

import pytest

from tests.rules.scripts import codes_by_lint

HEAD = """
import torch
from torch import nn
import torch.nn.functional as F
from multitask import Weighting, balance, terms
"""

A_LOSS_OUT_OF_SIGHT = """
def train(loader, net):
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for x, y in loader:
        optimizer.zero_grad()
        features = net(x)
        several = terms(y)
        balance(several)
        optimizer.step()
"""

LOSSES_BESIDE_ANOTHER_MODEL = """
def train(loader, net, other):
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for x, y in loader:
        optimizer.zero_grad()
        features = net(x)
        loss_list = terms(x, y)
        balance(loss_list, other)
        optimizer.step()
"""

ITS_RESULT_IS_KEPT = """
def train(loader, net, other):
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for x, y in loader:
        optimizer.zero_grad()
        features = net(x)
        loss_list = terms(x, y)
        weights = balance(loss_list, other)
        optimizer.step()
"""

A_METHOD_OF_WHAT_HOLDS_THE_MODEL = """
class Trainer:
    def __init__(self, net, heads):
        self.net = net
        self.heads = heads
        self.weighting = Weighting(net)
        self.optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)

    def train(self, loader):
        for x, y in loader:
            self.optimizer.zero_grad()
            features = self.net(x)
            loss_list = []
            for name in self.heads:
                loss_list.append(self.heads[name].loss(y[name]))
            self.weighting.combine(loss_list)
            self.optimizer.step()
"""

ONLY_RECORDS = """
def train(loader, net, tracker):
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.mse_loss(net(x), y)
        tracker.log(loss.item())
        print(x.shape)
        optimizer.step()
"""

A_NUMBER_IS_KEPT = """
def train(loader, net, history):
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.mse_loss(net(x), y)
        smooth = ease(loss.item())
        optimizer.step()
"""

A_BACKWARD_ELSEWHERE_IN_THE_FILE = """
def train(loader, net, several):
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.mse_loss(net(x), y)
        record(several)
        optimizer.step()
        loss.backward()
"""


@pytest.mark.parametrize(
    "program",
    [
        A_LOSS_OUT_OF_SIGHT,
        LOSSES_BESIDE_ANOTHER_MODEL,
        ITS_RESULT_IS_KEPT,
        A_METHOD_OF_WHAT_HOLDS_THE_MODEL,
    ],
)
def test_a_call_may_hide_the_only_backward(program: str) -> None:
    assert codes_by_lint(HEAD + program) == []


@pytest.mark.parametrize("program", [ONLY_RECORDS, A_NUMBER_IS_KEPT, A_BACKWARD_ELSEWHERE_IN_THE_FILE])
def test_what_is_recorded_hides_none(program: str) -> None:
    assert "GC105" in codes_by_lint(HEAD + program)
