"""Every experiment tells sick from healthy, on six kinds of training."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from gradclinic import Case
from gradclinic.engine import judge
from gradclinic.facts import Observation, Source
from gradclinic.probes._reach import reach
from gradclinic.probes.accumulate import accumulation
from gradclinic.probes.batch import independence
from gradclinic.probes.deterministic import repeat
from gradclinic.probes.init import initial_loss
from gradclinic.probes.lr import rate_range
from gradclinic.probes.overfit import overfit
from gradclinic.probes.resume import resume
from tests.probes import cases
from tests.probes.cases import HEALTHY, ConvNet, LanguageModel, adam, classes, labelled, next_token

EXPERIMENTS: dict[str, Callable[[Case], object]] = {
    "reach": reach,
    "overfit": overfit,
    "init": initial_loss,
    "lr": rate_range,
    "batch": independence,
    "accumulate": accumulation,
    "resume": resume,
    "deterministic": repeat,
}


def codes(*facts: object) -> list[str]:
    """What the rules make of these facts, without the symptoms a finding explains."""
    found = judge([Observation(Source.PROBE, tuple((fact,) for fact in facts))])
    return [finding.code for finding in found if not finding.explained_by]


@pytest.mark.parametrize("experiment", EXPERIMENTS)
@pytest.mark.parametrize("kind", HEALTHY)
def test_healthy_training_raises_nothing(experiment: str, kind: str) -> None:
    assert codes(EXPERIMENTS[experiment](HEALTHY[kind]())) == []


class DetachedFeatures(ConvNet):
    def features(self, images: Tensor) -> Tensor:
        return super().features(images).detach()


class NeverOn(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.hidden, self.head = nn.Linear(6, 16), nn.Linear(16, 4)
        nn.init.constant_(self.hidden.bias, -50.0)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.head(functional.relu(self.hidden(x)))
        return out


class UnusedHead(LanguageModel):
    def __init__(self) -> None:
        super().__init__()
        self.auxiliary = nn.Linear(32, 2)


def same_inputs() -> Case:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 4))
    return Case(model, (torch.ones(12, 6), torch.arange(12) % 4), classes, optimizer=adam)


def with_rate(make: Callable[[], Case], optimizer: Callable[[Any], torch.optim.Optimizer]) -> Case:
    case = make()
    case.optimizer = optimizer
    return case


@pytest.mark.parametrize(
    ("case", "code"),
    [
        (lambda: cases.cnn(DetachedFeatures), "GC205"),
        (lambda: Case(UnusedHead(), cases.padded(), next_token), "GC205"),
        (lambda: Case(NeverOn(), labelled(6), classes), "GC206"),
        (lambda: cases.forces(create_graph=False), "GC210"),
    ],
    ids=["detached features", "a head nobody uses", "units never on", "forces without create_graph"],
)
def test_a_gradient_that_does_not_arrive_is_named(case: Callable[[], Case], code: str) -> None:
    assert codes(reach(case())) == [code]


@pytest.mark.parametrize(
    ("case", "code"),
    [
        (same_inputs, "GC612"),
        (lambda: with_rate(cases.mlp, lambda p: torch.optim.Adam(p, lr=1e-5)), "GC306"),
        (lambda: with_rate(cases.cnn, lambda p: torch.optim.SGD(p, lr=300.0, momentum=0.9)), "GC307"),
        (lambda: with_rate(cases.language_model, lambda p: torch.optim.SGD(p, lr=50.0)), "GC307"),
    ],
    ids=["one input, four labels", "rate too low", "rate too high", "LM, too high"],
)
def test_a_batch_that_cannot_be_learned_is_told_with_its_cause(case: Callable[[], Case], code: str) -> None:
    assert codes(overfit(case())) == [code]


def scaled_head(make: Callable[[], Case], factor: float) -> Case:
    case = make()
    with torch.no_grad():
        case.model.get_submodule("head").weight.mul_(factor)
    return case


def far_targets() -> Case:
    torch.manual_seed(0)
    batch = torch.randn(16, 4), 1000 + torch.randn(16, 1)
    return Case(nn.Linear(4, 1), batch, lambda out, batch: functional.mse_loss(out, batch[1]))


@pytest.mark.parametrize(
    "case",
    [
        lambda: scaled_head(cases.cnn, 100.0),
        lambda: scaled_head(cases.language_model, 30.0),
        lambda: scaled_head(cases.rnn, 200.0),
        far_targets,
    ],
    ids=["CNN", "LM", "RNN", "targets near 1000"],
)
def test_a_first_loss_far_from_chance_is_told(case: Callable[[], Case]) -> None:
    assert codes(initial_loss(case())) == ["GC411"]


@pytest.mark.parametrize(
    ("make", "optimizer", "code"),
    [
        (cases.mlp, lambda p: torch.optim.Adam(p, lr=1e-6), "GC306"),
        (cases.rnn, lambda p: torch.optim.SGD(p, lr=1e-5), "GC306"),
        (cases.language_model, lambda p: torch.optim.Adam(p, lr=5.0), "GC307"),
        (cases.forces, lambda p: torch.optim.SGD(p, lr=20.0), "GC307"),
    ],
    ids=["MLP, too low", "RNN, too low", "LM, too high", "forces, too high"],
)
def test_a_rate_outside_the_range_is_told(make: Any, optimizer: Any, code: str) -> None:
    assert codes(rate_range(with_rate(make, optimizer))) == [code]


class SoftmaxOverBatch(ConvNet):
    def features(self, images: Tensor) -> Tensor:
        return super().features(images).softmax(0)


class Folded(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner, self.head = nn.Linear(6, 6), nn.Linear(6, 4)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.head(self.inner(x.reshape(6, -1).T))
        return out


@pytest.mark.parametrize(
    ("case", "mixer"),
    [
        (lambda: cases.cnn(SoftmaxOverBatch), ""),
        (lambda: cases.language_model(batch_first=False), "block.self_attn"),
        (lambda: cases.rnn(batch_first=False), "rnn"),
        (lambda: Case(Folded(), labelled(6), classes), ""),
    ],
    ids=["softmax over the batch", "attention over the batch", "recurrence over the batch", "folded view"],
)
def test_the_module_that_mixes_samples_is_named(case: Callable[[], Case], mixer: str) -> None:
    found = independence(case())
    assert codes(found) == ["GC412"]
    assert found.mixer == mixer
    assert found.where is not None


def summed_window(case: Case) -> Callable[[nn.Module, Any], None]:
    def window(model: nn.Module, pieces: Any) -> None:
        for piece in pieces:
            case.evaluate(model, piece).total.backward()

    return window


def averaged_window(case: Case) -> Callable[[nn.Module, Any], None]:
    def window(model: nn.Module, pieces: Any) -> None:
        for piece in pieces:
            (case.evaluate(model, piece).total / len(pieces)).backward()

    return window


@pytest.mark.parametrize("make", [cases.mlp, cases.rnn, cases.forces], ids=["MLP", "RNN", "forces"])
def test_a_loop_that_forgets_to_divide_is_told_by_how_much(make: Callable[[], Case]) -> None:
    case = make()
    found = accumulation(case, 3, summed_window(case))
    assert codes(found) == ["GC106"]
    assert found.scale == pytest.approx(3, rel=1e-3)
    assert codes(accumulation(case, 3, averaged_window(case))) == []


def test_means_over_unequal_padding_are_told_with_the_right_weights() -> None:
    case = cases.language_model(even=False)
    found = accumulation(case, 4)
    valid = [int((case.batch[1][at : at + 2] != -100).sum()) for at in range(0, 8, 2)]
    assert codes(found) == ["GC107"]
    assert found.weights == pytest.approx([count / sum(valid) for count in valid], rel=1e-3)


def test_a_loss_that_compares_samples_is_called_coupled() -> None:
    torch.manual_seed(0)

    def contrast(out: Tensor, batch: Any) -> Tensor:
        return functional.cross_entropy(out @ out.T, torch.arange(len(out)))

    found = accumulation(Case(nn.Linear(6, 8), torch.randn(12, 6), contrast))
    assert found.coupled
    assert codes(found) == []


class UnseededNoise(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        drawn = torch.Generator().manual_seed(int.from_bytes(os.urandom(4), "little"))
        out: Tensor = self.inner(x + torch.randn(x.shape, generator=drawn))
        return out


def noisy(make: Callable[[], Case]) -> Callable[[], Case]:
    def build() -> Case:
        case = make()
        case.model = UnseededNoise(case.model)
        return case

    return build


@pytest.mark.parametrize("make", [cases.mlp, cases.cnn, cases.rnn], ids=["MLP", "CNN", "RNN"])
def test_randomness_outside_the_seed_is_found_at_its_module(make: Callable[[], Case]) -> None:
    found = repeat(noisy(make))
    assert codes(found) == ["GC714"]
    assert found.step == 0
    assert found.what.startswith("the output of inner")
