"""Once training is under way some gradients are only glanced at, and what is odd is measured."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from gradclinic.facts.training import NonFinite, Training
from tests.measuring.training import measured


def trained(
    odd: int | None = None, *, factor: float = 1.0, clip: bool = False, breaks: bool = False
) -> Training:
    """240 updates, at one of which the loss is multiplied, or has a slope that is not a number."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    x = torch.randn(32, 64)

    def train() -> None:
        for update in range(240):
            optimizer.zero_grad()
            guess = model(x)
            loss = functional.mse_loss(guess, x) * (factor if update == odd else 1.0)
            if breaks and update == odd:
                loss = loss + (guess - guess.detach()).square().sum().sqrt()
            loss.backward()
            if clip:
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()

    (training,) = measured(train)
    return training


def test_every_loss_is_known_and_the_gradients_of_every_fourth_update() -> None:
    steps = trained().steps
    assert [step.index for step in steps] == list(range(240))
    assert all(step.loss is not None and step.loss > 0 for step in steps)
    assert all(step.measured for step in steps[:50])
    assert [step.index for step in steps[200:] if step.measured] == list(range(200, 240, 4))


@pytest.mark.parametrize("clip", [False, True])
def test_a_gradient_out_of_the_ordinary_is_measured_and_so_are_those_after_it(clip: bool) -> None:
    training = trained(213, factor=1000.0, clip=clip)
    found = {step.index: step for step in training.steps if step.measured}
    assert found[213].norm > 100 * found[212].norm
    assert set(range(213, 224)) <= set(found)


def test_a_gradient_that_breaks_at_any_update_is_told_with_that_update() -> None:
    training = trained(213, breaks=True)
    assert training.breakdown is not None
    assert (training.breakdown.what, training.breakdown.index) == (NonFinite.GRADIENT, 213)


def test_biases_too_large_to_be_cheap_are_not_glanced_at() -> None:
    torch.manual_seed(0)
    model = nn.Linear(3, 64)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def train() -> None:
        for _ in range(210):
            optimizer.zero_grad()
            model(torch.randn(4, 3)).square().mean().backward()
            optimizer.step()

    (training,) = measured(train)
    assert all(step.measured for step in training.steps)


def test_parameters_that_change_their_order_are_measured() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 64))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    held = optimizer.param_groups[0]["params"]

    def train() -> None:
        for update in range(215):
            if update == 205:
                held[1], held[2] = held[2], held[1]
            optimizer.zero_grad()
            model(torch.randn(4, 64)).square().mean().backward()
            optimizer.step()

    (training,) = measured(train)
    assert len(training.steps) == 215
    assert all(step.measured for step in training.steps[205:])
