"""A run that is ended after as many steps as its user asked to see has not shown what comes later."""

from __future__ import annotations

import contextlib

import pytest
import torch
from torch import nn

from gradclinic.engine import judge
from gradclinic.runtime import Recording, StopTraining


def codes_of_a_warm_up_from_zero(*, epochs: int, step_limit: int | None) -> list[str]:
    with Recording(step_limit=step_limit) as recording, contextlib.suppress(StopTraining):
        model = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        warm_up = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: min(1.0, epoch / 3))
        for _ in range(epochs):
            for _ in range(40):
                x = torch.randn(32, 4)
                loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            warm_up.step()
    return [finding.code for finding in judge([recording.observation()])]


@pytest.mark.parametrize(
    ("epochs", "step_limit", "told"), [(1, None, True), (4, 35, False), (4, None, False)]
)
def test_a_rate_of_zero_is_a_fault_once_the_run_is_over(
    epochs: int, step_limit: int | None, told: bool
) -> None:
    assert ("GC306" in codes_of_a_warm_up_from_zero(epochs=epochs, step_limit=step_limit)) is told
