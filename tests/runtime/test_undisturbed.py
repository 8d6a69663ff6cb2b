"""Watching changes nothing: not the numbers, not the random streams, not what the program sees."""

from __future__ import annotations

import random
import runpy
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional
from torch.optim.optimizer import _global_optimizer_post_hooks

from gradclinic.engine import judge
from gradclinic.runtime import Recording
from gradclinic.runtime.observers import clipping
from tests.runtime.conftest import Record, tape_of

SCRIPTS = sorted((Path(__file__).parent / "healthy").glob("*.py"))
WATCHED = [
    (torch.autograd, "backward"),
    (torch.optim.Optimizer, "zero_grad"),
    (torch.optim.Optimizer, "__init__"),
    (nn.Module, "__call__"),
    (nn.Module, "train"),
    (nn.utils, "clip_grad_norm_"),
    (functional, "cross_entropy"),
    (torch.optim.lr_scheduler.SequentialLR, "step"),
    (torch.amp.GradScaler, "step"),
    (torch.utils.data.DataLoader, "__iter__"),
    (torch, "save"),
]


def outcome(script: Path, recording: Recording | None) -> tuple[dict[str, torch.Tensor], torch.Tensor, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if recording is None:
            names = runpy.run_path(str(script), run_name="__main__")
        else:
            with recording:
                names = runpy.run_path(str(script), run_name="__main__")
    weights = {
        f"{name}.{key}": value
        for name, thing in names.items()
        if isinstance(thing, nn.Module)
        for key, value in thing.state_dict().items()
        if isinstance(value, torch.Tensor)
    }
    return weights, torch.get_rng_state(), random.getstate()


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_healthy_run_is_found_healthy_and_ends_in_the_same_bits(script: Path) -> None:
    weights, stream, python_stream = outcome(script, None)
    recording = Recording()
    watched_weights, watched_stream, watched_python_stream = outcome(script, recording)

    assert [one for one in judge([recording.observation()]) if one.severity != "info"] == []
    assert recording.problems == ()
    assert weights
    assert weights.keys() == watched_weights.keys()
    assert all(torch.equal(weights[name], watched_weights[name]) for name in weights)
    assert torch.equal(stream, watched_stream)
    assert python_stream == watched_python_stream


def test_torch_is_left_as_it_was_found() -> None:
    before = [vars(owner)[name] for owner, name in WATCHED]
    hooks = len(_global_optimizer_post_hooks)
    with Recording():
        assert all(vars(owner)[name] is not b for (owner, name), b in zip(WATCHED, before, strict=True))

    assert [vars(owner)[name] for owner, name in WATCHED] == before
    assert len(_global_optimizer_post_hooks) == hooks


def test_an_error_in_an_observer_stays_there(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: object) -> None:
        raise ZeroDivisionError("a fault of ours")

    monkeypatch.setattr(clipping, "limit_of", broken)
    weight = nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    with Recording() as recording:
        for _ in range(3):
            (weight * 3).sum().backward()
            nn.utils.clip_grad_norm_([weight], 1.0)
            optimizer.step()

    assert weight.grad is not None
    assert weight.grad.norm() < 1.01
    (problem,) = recording.problems
    assert "a fault of ours" in problem
    assert "unknown call" in tape_of(recording).kinds


def test_the_users_own_errors_pass_through() -> None:
    with Recording() as recording, pytest.raises(RuntimeError, match="does not require grad"):
        torch.ones(1).backward()

    assert recording.problems == ()


def test_a_warning_of_torch_names_the_users_line() -> None:
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    with Recording(), pytest.warns(UserWarning, match="before `optimizer.step") as caught:
        schedule.step()

    assert caught[0].filename == __file__


def test_what_locals_returned_does_not_grow() -> None:
    def train(lr: float = 0.1) -> dict[str, Any]:
        settings = locals()
        model = nn.Linear(2, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=lr)
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
        return settings

    with Recording():
        assert train().keys() == {"lr"}


def test_clipping_a_generator_of_parameters_clips_them(record: Record) -> None:
    model = nn.Linear(2, 1)

    def train() -> None:
        (model(torch.ones(1, 2)) * 100).sum().backward()
        nn.utils.clip_grad_norm_((p for p in model.parameters()), 1.0)

    record(train)

    norm = torch.stack([p.grad.norm() for p in model.parameters() if p.grad is not None]).norm()
    assert norm.item() == pytest.approx(1.0, abs=1e-3)


class Scripted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 4)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return functional.cross_entropy(self.layer(x), y)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_torchscript_compiles_as_ever() -> None:
    with Recording() as recording:
        scripted = torch.jit.script(Scripted())
        scripted(torch.randn(2, 3), torch.tensor([1, 2])).backward()

    assert recording.problems == ()


def _twice(x: torch.Tensor) -> torch.Tensor:
    return x + x


class Doubler:
    def __init__(self, x: torch.Tensor) -> None:
        self.x = _twice(x)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_scripted_class_finds_the_functions_beside_it() -> None:
    with Recording():
        torch.jit.script(Doubler)

    assert Doubler(torch.ones(1)).x.item() == 2


def test_a_compiled_model_compiles_in_one_piece_and_is_still_watched(record: Record) -> None:
    model = Scripted()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    compiled = torch.compile(model, backend="eager", fullgraph=True)

    def train() -> None:
        for _ in range(2):
            optimizer.zero_grad()
            compiled(torch.randn(2, 3), torch.tensor([1, 2])).backward()
            optimizer.step()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tape = record(train)

    assert [e.kind for e in tape.events if e.kind in ("backward", "step")] == ["backward", "step"] * 2
    torch._dynamo.reset()


def test_per_sample_gradients_and_fake_tensors_are_none_of_our_business(record: Record) -> None:
    def loss(parameters: dict[str, torch.Tensor], x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return functional.cross_entropy(torch.func.functional_call(model, parameters, (x[None],)), y[None])

    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    weights = {name: value.detach() for name, value in model.named_parameters()}
    per_sample = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))

    def train() -> None:
        gradients = per_sample(weights, torch.randn(5, 3), torch.randint(2, (5,)))
        for name, parameter in model.named_parameters():
            parameter.grad = gradients[name].mean(0)
        optimizer.step()
        with FakeTensorMode():
            functional.mse_loss(nn.Linear(2, 1)(torch.ones(4, 2)), torch.zeros(4, 1)).backward()

    assert "step" in record(train).kinds
