"""A loss that is made a new leaf: a backward from it reaches nothing, whatever the model is."""

from __future__ import annotations

import pytest

from tests.static.reading import TORCH, told

LOOP = """
from torch.autograd import Variable

def train(model, optimizer, criterion, loader):
    for x, y in loader:
        loss = {loss}
        optimizer.zero_grad()
        {backward}
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("loss", "code"),
    [
        ("torch.tensor(F.mse_loss(model(x), y), requires_grad=True)", "GC203"),
        ("criterion(model(x), y); loss = torch.tensor(loss, requires_grad=True)", "GC203"),
        ("torch.tensor(F.mse_loss(agent.loss.detach(), y), requires_grad=True)", "GC203"),
        ("criterion(model(x), y); loss = Variable(loss, requires_grad=True)", "GC201"),
        ("Variable(F.mse_loss(model(x), y), requires_grad=True)", "GC201"),
    ],
)
def test_it_is_told_of_models_that_are_not_in_sight(loss: str, code: str) -> None:
    source = TORCH + LOOP.format(loss=loss, backward="loss.backward()")
    assert {found for found, _ in told(source)} == {code}


@pytest.mark.parametrize(
    ("loss", "backward"),
    [
        ("F.mse_loss(model(Variable(x, requires_grad=True)), y)", "loss.backward()"),
        ("torch.tensor(0.0, requires_grad=True) + F.mse_loss(model(x), y)", "loss.backward()"),
        ("torch.tensor(F.mse_loss(model(x), y).item())", "(loss * model(x)).mean().backward()"),
        ("torch.tensor(F.mse_loss(x, y), requires_grad=True)", "(loss * model(x)).mean().backward()"),
    ],
    ids=["inputs", "start of a sum", "a weight", "a weight that is learned"],
)
def test_other_leaves_are_meant(loss: str, backward: str) -> None:
    assert told(TORCH + LOOP.format(loss=loss, backward=backward)) == set()


@pytest.mark.parametrize(
    "leaf", ["torch.tensor(loss, requires_grad=True)", "Variable(loss, requires_grad=True)"]
)
def test_a_leaf_whose_own_gradient_is_read_is_meant(leaf: str) -> None:
    weighed = f"F.mse_loss(model(x), y); v = {leaf}; torch.exp(v).backward(); loss = loss * v.grad"
    source = LOOP.format(loss=weighed, backward="loss.backward()")
    assert told(TORCH + source) == set()
