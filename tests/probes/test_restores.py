"""Experiments leave the user's objects and random streams exactly as they were."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from gradclinic import Case
from gradclinic.probes._fingerprint import fingerprint
from gradclinic.probes._reach import reach
from gradclinic.probes._restore import undisturbed
from gradclinic.probes.accumulate import accumulation
from gradclinic.probes.batch import independence
from gradclinic.probes.data import label_alignment, stored_data
from gradclinic.probes.deterministic import repeat
from gradclinic.probes.init import initial_loss
from gradclinic.probes.lr import rate_range
from gradclinic.probes.overfit import overfit
from gradclinic.probes.resume import resume
from tests.probes.cases import adam, classes, cnn, gan, language_model


class Stateful(nn.Module):
    """Keeps state in every way a module can."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.norm, self.head = nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 4)
        self.calls, self.seen, self.last = 0, [0], {"mean": torch.zeros(())}
        self.trace = torch.zeros(8)
        self.noise = torch.Generator().manual_seed(3)
        self.head.eval()
        self.norm.bias.requires_grad_(False)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.norm(self.linear(x + torch.randn(x.shape, generator=self.noise)))
        self.calls += 1
        self.seen.append(self.calls)
        self.last["mean"] = hidden.detach().mean()
        self.trace.mul_(0.9).add_(hidden.detach().mean(0))
        out: Tensor = self.head(nn.functional.dropout(hidden, 0.2, self.training))
        return out


def stateful() -> Case:
    torch.manual_seed(0)
    pairs = TensorDataset(torch.randn(120, 6), torch.arange(120) % 4)
    order = torch.Generator().manual_seed(5)
    loader = DataLoader(pairs, batch_size=10, shuffle=True, generator=order)
    case = Case(Stateful(), loss=classes, optimizer=adam, loader=loader)
    case.model.get_parameter("linear.weight").grad = torch.full((8, 6), 0.5)
    return case


def bits(case: Case, hooks: bool = True) -> dict[str, Any]:
    model: Any = case.model
    numpy_state = numpy.random.get_state()
    state: dict[str, Any] = {
        "weights": fingerprint([*model.parameters(), *model.buffers()]),
        "gradients": fingerprint([p.grad for p in model.parameters()]),
        "places": [p.data_ptr() for p in model.parameters()],
        "trainable": [p.requires_grad for p in model.parameters()],
        "modes": [module.training for module in model.modules()],
        "hooks": [len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules()],
        "batch": fingerprint(case.batch),
        "random": fingerprint([torch.get_rng_state(), repr(random.getstate()), repr(numpy_state)]),
    }
    if isinstance(model, Stateful):
        state["own"] = (model.calls, list(model.seen), float(model.last["mean"]), fingerprint(model.trace))
        state["generators"] = fingerprint([model.noise.get_state(), case.loader.generator.get_state()])  # type: ignore[union-attr]
    return state


EXPERIMENTS: dict[str, Callable[[Case], object]] = {
    "overfit": lambda case: overfit(case, steps=5),
    "init": initial_loss,
    "lr": rate_range,
    "batch": independence,
    "accumulate": lambda case: accumulation(case, 2),
    "resume": resume,
    "deterministic": repeat,
    "reach": reach,
    "labels": label_alignment,
    "stored": stored_data,
}


@pytest.mark.parametrize("experiment", EXPERIMENTS)
@pytest.mark.parametrize("make", [stateful, cnn, language_model, gan])
def test_an_experiment_leaves_no_trace(make: Callable[[], Case], experiment: str) -> None:
    case = make()
    before = bits(case)
    EXPERIMENTS[experiment](case)
    assert bits(case) == before


def test_an_experiment_that_fails_leaves_no_trace_either() -> None:
    case = stateful()
    before = bits(case)
    with pytest.raises(ZeroDivisionError), undisturbed(case):
        _turn_upside_down(case)
    assert bits(case) == before


def _turn_upside_down(case: Case) -> None:
    case.model.double().train()
    for parameter in case.model.parameters():
        parameter.data.zero_()
        parameter.requires_grad_(True)
    case.model.register_forward_hook(lambda *_: None)
    case.batch[0].zero_()
    case.model(torch.zeros(3, 6, dtype=torch.float64))
    raise ZeroDivisionError


def test_a_critic_inside_the_loss_is_put_back_too() -> None:
    case = gan()
    critic = next(cell.cell_contents for cell in case.loss.__closure__)  # type: ignore[union-attr]
    before = fingerprint([*critic.parameters(), *critic.buffers()])
    overfit(case, steps=5)
    assert fingerprint([*critic.parameters(), *critic.buffers()]) == before
    assert all(parameter.grad is None for parameter in critic.parameters())
