"""A checkpoint that leaves something out is told what it left out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

from gradclinic import Training
from gradclinic.probes.resume import resume

PARTS = ("model", "optimizer", "schedule", "random", "place")


def training(*saved: str) -> Callable[[], Training]:
    """A loop with dropout, a schedule and shuffled data, whose checkpoint holds the parts in `saved`."""

    def make() -> Training:
        torch.manual_seed(0)
        data = torch.randn(6, 16, 4)
        model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 1))
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda tick: 0.5**tick)
        place = [0]

        def step() -> None:
            x = data[place[0] % len(data)]
            place[0] += 1
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), x.sum(1, keepdim=True)).backward()
            optimizer.step()
            schedule.step()

        def save(path: Path) -> None:
            state = {
                "model": model.state_dict(),
                "optimizer": optimizer.state_dict(),
                "schedule": schedule.state_dict(),
                "random": torch.get_rng_state(),
                "place": place[0],
            }
            torch.save({part: state[part] for part in saved}, path)

        def load(path: Path) -> None:
            state = torch.load(path)
            model.load_state_dict(state["model"])
            if "optimizer" in state:
                optimizer.load_state_dict(state["optimizer"])
            if "schedule" in state:
                schedule.load_state_dict(state["schedule"])
            if "random" in state:
                torch.set_rng_state(state["random"])
            place[0] = state.get("place", 0)

        return Training(model, optimizer, step, save, load, {"schedule": schedule})

    return make


def test_a_complete_checkpoint_goes_on_bit_for_bit() -> None:
    found = resume(training(*PARTS))
    assert found.exact
    assert found.not_restored == ()


@pytest.mark.parametrize(
    ("left_out", "told"),
    [
        ("optimizer", "Adam's exp_avg"),
        ("schedule", "the schedule"),
        ("random", "torch's random state"),
        ("place", "the position in the data"),
    ],
)
def test_what_was_left_out_is_named(left_out: str, told: str) -> None:
    found = resume(training(*(part for part in PARTS if part != left_out)))
    assert not found.exact
    assert told in found.not_restored
    assert found.where is not None


def test_only_what_was_left_out_is_named() -> None:
    found = resume(training(*(part for part in PARTS if part != "place")))
    assert found.not_restored == ("the position in the data",)
