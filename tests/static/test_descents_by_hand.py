"""`w -= lr * w.grad` in loops that clear nothing, and beside each what makes such a loop right."""

from __future__ import annotations

from textwrap import dedent

import pytest

from tests.rules.scripts import codes_by_lint

LOOP = """
import torch
from torch import nn
import helpers

def squares(x, w):
    return ((x @ w) ** 2).mean()

def forget(w):
    w.grad.zero_()

model = nn.Linear(3, 1)
w = torch.randn(3, requires_grad=True)
b = torch.zeros(1, requires_grad=True)
params = [w, b]
lr = 0.1
for step in range(100):
    x = torch.randn(8, 3)
    loss = squares(x, w) + b.sum() + model(x).mean()
    loss.backward()
    with torch.no_grad():
        {update}
    {then}
"""
UPDATES = (
    "w -= lr * w.grad; b -= lr * b.grad",
    "w.data -= lr * w.grad.data",
    "w.data = w.data - lr * w.grad",
    "w.sub_(lr * w.grad)",
    "w.data.add_(w.grad, alpha=-lr)",
    "w += -lr * w.grad",
    "for p in model.parameters(): p -= lr * p.grad",
    "for p in params: p.data.add_(p.grad.data, alpha=-lr)",
)


@pytest.mark.parametrize("update", UPDATES)
def test_descent_on_the_sum_of_all_gradients_is_told(update: str) -> None:
    assert codes_by_lint(LOOP.format(update=update, then="print(loss.item())")) == ["GC101"]


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize(
    "then",
    [
        "w.grad.zero_(); b.grad.zero_(); model.zero_grad()",
        "w.grad = None",
        "w.grad.data.fill_(0)",
        "w.grad *= 0",
        "w.grad[:] = 0; b.grad[:] = 0",
        "nn.init.constant_(w.grad, 0)",
        "g = w.grad; g.mul_(0)",
        "break",
        "del w.grad",
        "forget(w)",
        "helpers.start_over(w, params, model)",
        "helpers.reset()",
        "w = w.detach().requires_grad_(); params = [w, b]; model = nn.Linear(3, 1)",
    ],
)
def test_nothing_is_said_where_the_gradient_may_be_gone(update: str, then: str) -> None:
    assert codes_by_lint(LOOP.format(update=update, then=then)) == []


def test_a_clear_for_each_parameter_is_one() -> None:
    update = "for p in params: p -= lr * p.grad; p.grad.zero_()"
    assert codes_by_lint(LOOP.format(update=update, then="")) == []


def test_gradients_of_an_epoch_may_be_gathered() -> None:
    gathered = """
    import torch

    w = torch.randn(3, requires_grad=True)
    for epoch in range(10):
        for x in batches:
            ((x @ w) ** 2).mean().backward()
        with torch.no_grad():
            w -= 0.1 * w.grad
        w.grad = None
    """
    assert codes_by_lint(dedent(gathered)) == []
    assert codes_by_lint(dedent(gathered).replace("w.grad = None", "pass")) == ["GC101"]


def test_updates_that_something_else_makes_are_left_alone() -> None:
    attack = """
    import torch

    def attack(model, x, y, loss):
        delta = torch.zeros_like(x, requires_grad=True)
        for _ in range(10):
            loss(model(x + delta), y).backward()
            delta = (delta + 0.1 * delta.grad.sign()).detach().requires_grad_()
        return delta
    """
    assert codes_by_lint(dedent(attack)) == []


IN_TURN = """
import torch
from torch import nn

class Clients:
    def __init__(self, n):
        self.models = [nn.Linear(3, 1) for _ in range(n)]

    def fresh(self):
        self.net = nn.Linear(3, 1)

def run(clients, batches, k):
    for i, x in enumerate(batches):
        {prepare}
        {net}(x).mean().backward()
        for p in {net}.parameters():
            p.data -= 0.1 * p.grad
"""


@pytest.mark.parametrize(
    ("net", "prepare"),
    [
        ("clients.models[i]", "pass"),
        ("clients.net", "clients.fresh()"),
        ("net", "net = nn.Linear(3, 1)"),
    ],
)
def test_another_model_each_time_has_no_gradient_yet(net: str, prepare: str) -> None:
    assert "GC101" not in codes_by_lint(IN_TURN.format(net=net, prepare=prepare))


def test_the_last_batch_of_an_epoch_may_move_all_that_was_gathered() -> None:
    gathered = """
    import torch

    def run(w, data, epochs):
        for epoch in range(epochs):
            w.grad = None
            for i, x in enumerate(data):
                ((x @ w).mean() / len(data)).backward()
                if i + 1 == len(data):
                    w.data -= 0.1 * w.grad
    """
    assert codes_by_lint(dedent(gathered)) == []


def test_a_mean_of_all_gradients_may_be_wanted() -> None:
    averaging = """
    import torch

    def run(w, start, data):
        for t, x in enumerate(data, 1):
            ((x @ w) ** 2).mean().backward()
            w.data = start - 0.1 / t**0.5 * w.grad
    """
    assert codes_by_lint(dedent(averaging)) == []
