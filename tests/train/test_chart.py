"""A TrainStep is watched by itself: its updates' own numbers are enough for a diagnosis."""

from __future__ import annotations

import torch
from torch import nn

from gradclinic import Clip, TrainStep


def trained(clip: Clip | None, updates: int = 60) -> TrainStep:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
    step = TrainStep(model, torch.optim.SGD(model.parameters(), lr=0.05), clip=clip)
    for _ in step.over(range(updates)):
        x = torch.randn(32, 8)
        step(nn.functional.mse_loss(model(x), x.sum(1, keepdim=True)))
    return step


def test_a_healthy_training_is_found_healthy() -> None:
    diagnosis = trained(Clip.norm(10.0)).diagnose()
    assert [finding.code for finding in diagnosis.findings if finding.severity != "info"] == []
    assert diagnosis.summary.steps == 60


def test_a_clip_far_below_the_gradients_is_named_with_a_better_one() -> None:
    diagnosis = trained(Clip.norm(1e-3)).diagnose()
    assert diagnosis.findings[0].code == "GC604"
    assert "GC604 clipping-every-step" in str(diagnosis)


def test_before_the_first_update_there_is_nothing_to_say() -> None:
    model = nn.Linear(2, 1)
    assert TrainStep(model, torch.optim.SGD(model.parameters(), lr=0.1)).diagnose().findings == ()
