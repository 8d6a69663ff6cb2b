"""What users do to gradients and weights without calling anything that could be watched."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from tests.runtime.conftest import Record, order


def loop(clear: Callable[[nn.Module], object], steps: int = 2) -> Callable[[], None]:
    def train() -> None:
        model = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(steps):
            model(torch.randn(8, 4)).pow(2).mean().backward()
            optimizer.step()
            clear(model)

    return train


def set_to_none(model: nn.Module) -> None:
    for parameter in model.parameters():
        parameter.grad = None


def zero_in_place(model: nn.Module) -> None:
    for parameter in model.parameters():
        assert parameter.grad is not None
        parameter.grad.zero_()


def zero_through_data(model: nn.Module) -> None:
    for parameter in model.parameters():
        assert parameter.grad is not None
        parameter.grad.data.zero_()


@pytest.mark.parametrize("clear", [set_to_none, zero_in_place, zero_through_data])
def test_gradients_cleared_by_hand_are_cleared(record: Record, clear: Callable[[nn.Module], None]) -> None:
    tape = record(loop(clear))

    assert order(tape) == "backward step zero_grad backward step"
    assert [e.attrs for e in tape.events if e.kind == "zero_grad"] == [{"by": "hand"}]


def test_gradients_nobody_clears_are_not(record: Record) -> None:
    assert order(record(loop(lambda model: None))) == "backward step backward step"


@pytest.mark.parametrize("through_data", [False, True])
def test_gradients_written_after_a_clear_are_noted_before_the_step(
    record: Record, through_data: bool
) -> None:
    def train() -> None:
        model = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model(torch.randn(8, 4)).mean().backward()
        optimizer.zero_grad(set_to_none=False)
        for parameter in model.parameters():
            assert parameter.grad is not None
            (parameter.grad.data if through_data else parameter.grad).fill_(0.5)
        optimizer.step()

    assert order(record(train)) == "backward zero_grad grad-write step"


@pytest.mark.parametrize("through_data", [False, True])
def test_weights_moved_by_hand_are_noted(record: Record, through_data: bool) -> None:
    def train() -> None:
        model = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(2):
            optimizer.zero_grad()
            model(torch.randn(8, 4)).pow(2).mean().backward()
            with torch.no_grad():
                for parameter in model.parameters():
                    assert parameter.grad is not None
                    (parameter.data if through_data else parameter).sub_(0.1 * parameter.grad)

    assert order(record(train)) == "zero_grad backward weight-write zero_grad backward"


def test_clearing_a_part_of_an_optimizers_gradients_is_left_open(record: Record) -> None:
    def train() -> None:
        body, head = nn.Linear(2, 2), nn.Linear(2, 1)
        optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)
        head(body(torch.randn(4, 2))).mean().backward()
        head.zero_grad()
        optimizer.step()

    tape = record(train)

    assert [event.kind for event in tape.timeline(tape.optimizers[0])][-2:] == ["unknown call", "step"]
