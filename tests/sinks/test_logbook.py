"""The same names and numbers reach every logger, and an alert is told once."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

import pytest
import torch
from torch import nn

import gradclinic as gc
from gradclinic.errors import UsageError
from gradclinic.findings import Finding
from gradclinic.sinks import Sink, open_sink, sinks_of


class Notes:
    """A sink that keeps what it is given."""

    def __init__(self) -> None:
        self.numbers: dict[str, dict[int, float]] = {}
        self.spreads: dict[str, list[int]] = {}
        self.alerts: list[tuple[int, str]] = []
        self.closed = 0

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            self.numbers.setdefault(name, {})[step] = value

    def histogram(self, step: int, name: str, values: Sequence[float]) -> None:
        self.spreads.setdefault(name, []).append(len(values))

    def alert(self, step: int, finding: Finding) -> None:
        self.alerts.append((step, finding.code))

    def close(self) -> None:
        self.closed += 1


def _trained(to: object, *, updates: int = 40, clip_late: bool = False) -> gc.watching.Monitor:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    groups = [{"params": model[0].parameters()}, {"params": model[2].parameters(), "lr": 0.02}]
    optimizer = torch.optim.SGD(groups, lr=0.01)
    with gc.watch(model, optimizer, to=to) as monitor:
        for _ in range(updates):
            x = torch.randn(16, 4)
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), x.sum(1, keepdim=True)).backward()
            if not clip_late:
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            if clip_late:
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    return monitor


def test_every_update_has_its_totals_and_sampled_ones_each_tensor():
    notes = Notes()
    monitor = _trained(notes)
    assert monitor.diagnose().problems == ()
    every = set(range(40))
    for name in ("loss", "gradient_norm/total", "rate/0", "rate/1", "clip_rate"):
        assert set(notes.numbers[f"gradclinic/{name}"]) == every
    assert notes.numbers["gradclinic/rate/1"][7] == pytest.approx(0.02)
    norms = notes.numbers["gradclinic/gradient_norm/0.weight"]
    assert {0, 10, 20, 30} <= set(norms) < every
    assert 0 < norms[0] <= 1.0 + 1e-6  # as the update used it, after clipping
    weights = notes.numbers["gradclinic/weight_norm/2.weight"]
    assert notes.numbers["gradclinic/weight_norm/total"][0] > weights[0] > 0
    assert 0 < notes.numbers["gradclinic/update_ratio/typical"][10] < 1
    assert set(notes.spreads) == {
        "gradclinic/histogram/gradient_norm",
        "gradclinic/histogram/update_ratio",
    }
    assert notes.alerts == []
    assert notes.closed == 1


def test_an_alert_comes_while_the_run_goes_on_and_comes_once():
    notes = Notes()
    monitor = _trained([notes], clip_late=True)
    assert [finding.code for finding in monitor.diagnose().findings] == ["GC109"]
    assert notes.alerts == [(31, "GC109")]


def test_a_logger_that_fails_is_left_out_and_training_goes_on():
    class Full(Notes):
        def scalars(self, step: int, values: Mapping[str, float]) -> None:
            raise OSError("no space left")

    monitor = _trained(Full())
    assert monitor.diagnose().summary.steps == 40
    assert monitor.diagnose().problems == ("Logbook failed and was left out: OSError: no space left",)


def test_what_is_no_logger_is_refused_in_one_line():
    assert isinstance(Notes(), Sink)
    with pytest.raises(UsageError, match="cannot log to dict; give a SummaryWriter"):
        sinks_of({})
    with pytest.raises(UsageError, match="there is no log 'tensorbord'; choose one of tensorboard, wandb"):
        open_sink("tensorbord")


def test_a_package_that_is_missing_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "trackio", None)
    with pytest.raises(UsageError, match=r"trackio is not installed; pip install 'gradclinic\[trackio\]'"):
        open_sink("trackio")
