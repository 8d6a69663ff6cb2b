"""The assertions for tests, by themselves and through pytest in a project of the user's."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path

import pytest
import torch
from torch import nn

from gradclinic import Case, testing
from tests.conftest import SOURCE
from tests.probes import cases
from tests.probes.cases import HEALTHY, adam, classes, labelled
from tests.probes.test_told_apart import DetachedFeatures, NeverOn, noisy, same_inputs

QUICK: dict[str, Callable[[Case], None]] = {
    "gradients flow": testing.assert_gradients_flow,
    "all update": testing.assert_all_parameters_update,
    "frozen stay": testing.assert_frozen_stay,
    "samples independent": testing.assert_samples_independent,
    "accumulation": testing.assert_accumulation_matches,
    "resumes": testing.assert_resumes_exactly,
    "deterministic": testing.assert_deterministic,
    "first loss": testing.assert_initial_loss,
    "finite": testing.assert_finite,
    "on the CPU": lambda case: testing.assert_on_device(case, "cpu"),
}


@pytest.mark.parametrize("assertion", QUICK)
@pytest.mark.parametrize("kind", HEALTHY)
def test_healthy_training_passes(assertion: str, kind: str) -> None:
    QUICK[assertion](HEALTHY[kind]())


def test_a_failure_reads_like_a_diagnosis() -> None:
    with pytest.raises(AssertionError) as failure:
        testing.assert_gradients_flow(cases.cnn(DetachedFeatures))
    said = str(failure.value)
    assert said.startswith("2 of 6 trainable parameters get a gradient")
    assert "cases.py:" in said
    assert "GC205 parameter-unreached" in said
    assert "the loss does not reach conv.weight, conv.bias, norm.weight, norm.bias" in said


def failing(assertion: Callable[..., object], *args: object, **options: object) -> str:
    with pytest.raises(AssertionError) as failure:
        assertion(*args, **options)
    return str(failure.value)


def test_each_assertion_fails_on_its_own_fault() -> None:
    assert "GC612" in failing(testing.assert_learns, same_inputs(), steps=60)
    assert "hidden.weight" in failing(
        testing.assert_all_parameters_update, Case(NeverOn(), labelled(6), classes)
    )
    assert "GC412" in failing(testing.assert_samples_independent, cases.rnn(batch_first=False))
    assert "GC107" in failing(testing.assert_accumulation_matches, cases.language_model(even=False))
    assert "GC714" in failing(testing.assert_deterministic, noisy(cases.mlp))


def test_parameters_the_optimizer_does_not_hold_are_named() -> None:
    case = cases.mlp()
    case.optimizer = lambda params: torch.optim.Adam(list(params)[:2], lr=1e-2)
    assert "2 parameters did not move in 3 steps: 3.weight, 3.bias" in failing(
        testing.assert_all_parameters_update, case
    )
    testing.assert_all_parameters_update(case, only="0.*")


def test_statistics_of_a_frozen_part_must_stay() -> None:
    case = cases.cnn()
    for parameter in case.model.get_submodule("norm").parameters():
        parameter.requires_grad_(False)
    said = failing(testing.assert_frozen_stay, case)
    assert "norm.running_mean" in said


def test_named_parameters_must_stay() -> None:
    assert "head.weight" in failing(testing.assert_frozen_stay, cases.cnn(), ["head.*"])


def test_values_are_checked() -> None:
    case = cases.mlp()
    testing.assert_outputs_within(case, -5, 5)
    assert "expected [0, 1]" in failing(testing.assert_outputs_within, case, 0, 1)
    with torch.no_grad():
        case.model.get_parameter("0.bias")[0] = float("nan")
    said = failing(testing.assert_finite, case)
    assert "parameter 0.bias, the outputs, the loss term loss" in said
    assert "are not on cuda" in failing(testing.assert_on_device, case, "cuda")


def test_a_variant_with_other_gradients_is_told() -> None:
    case = cases.mlp()
    case.model.eval()
    case.variants = {"same": lambda model: model, "detached": lambda model: lambda x: model(x.detach())}
    testing.assert_compiled_matches(case)
    case.variants = {"scaled": lambda model: lambda x: 2 * model(x)}
    said = failing(testing.assert_compiled_matches, case)
    assert "scaled does not agree with eager" in said
    assert "GC806 normalisation-differs" in said


def test_a_checkpoint_without_state_of_the_model_is_told() -> None:
    class Counting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear, self.calls = nn.Linear(6, 4), 0

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.calls += 1
            out: torch.Tensor = self.linear(x) * (1 + 0.1 * self.calls)
            return out

    torch.manual_seed(0)
    case = Case(Counting(), labelled(6), classes, optimizer=adam)
    assert "GC710" in failing(testing.assert_resumes_exactly, case)


PROJECT = """
import torch
from torch import nn
from gradclinic import Case


def test_sick_loop(training):
    training.assert_trains_soundly(clips_too_late)


def test_healthy_loop(training):
    training.assert_trains_soundly(clips_in_time)


def test_healthy_model(training):
    model = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 3))
    batch = torch.randn(8, 4), torch.arange(8) % 3
    case = Case(model, batch, lambda out, batch: nn.functional.cross_entropy(out, batch[1]))
    training.assert_learns(case)
    training.assert_samples_independent(case)


def clips_too_late():
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(20):
        x = torch.randn(8, 4)
        loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)


def clips_in_time():
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(20):
        x = torch.randn(8, 4)
        loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
"""


def python(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, *words], cwd=folder, env=env, capture_output=True, text=True, check=False
    )


def test_in_a_project_the_sick_loop_fails_with_code_and_line(tmp_path: Path) -> None:
    (tmp_path / "test_training.py").write_text(PROJECT)
    installed = entry_points(group="pytest11", name="gradclinic")
    plugin = "gradclinic" if installed else "gradclinic.pytest_plugin"
    done = python(tmp_path, "-m", "pytest", "-q", "-p", plugin, "test_training.py")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "1 failed, 2 passed" in done.stdout
    assert "FAILED test_training.py::test_sick_loop" in done.stdout
    assert "test_training.py:32: error GC109 clip-after-step" in done.stdout


def test_the_plugin_costs_no_torch_until_it_is_used(tmp_path: Path) -> None:
    done = python(
        tmp_path,
        "-c",
        "import sys, gradclinic.pytest_plugin, gradclinic.testing; print('torch' in sys.modules)",
    )
    assert done.stdout.strip() == "False", done.stderr
