"""A training step taken from a running program, to make experiments on."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from gradclinic.runtime import Recording
from gradclinic.runtime.capture import Capture


class Tagger(nn.Module):
    """Returns its scores in a mapping, as models of libraries do."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(12, 8)
        self.scores = nn.Linear(8, 12)

    def forward(self, tokens: Tensor) -> dict[str, Tensor]:
        return {"logits": self.scores(self.words(tokens))}


def next_token(model: nn.Module, given: Tensor) -> Tensor:
    logits = model(given)["logits"][:, :-1].reshape(-1, 12)
    loss = functional.cross_entropy(logits, given[:, 1:].reshape(-1))
    assert (logits.argmax(-1) == given[:, 1:].reshape(-1)).float().mean() <= 1
    loss += 1e-3 * logits.square().mean()
    return loss / 2


def regression(model: nn.Module, given: Tensor) -> Tensor:
    return nn.MSELoss()(model(given).squeeze(1), given.sum(1))


STEPS: list[Any] = [
    pytest.param(Tagger, lambda: torch.randint(12, (4, 9)), next_token, id="language model"),
    pytest.param(lambda: nn.Linear(3, 1), lambda: torch.randn(5, 3), regression, id="regression"),
]


def gradients_of(model: nn.Module) -> dict[str, list[float]]:
    return {name: p.grad.tolist() for name, p in model.named_parameters() if p.grad is not None}


def trained(
    model: nn.Module, data: Tensor, loss_of: Callable[[nn.Module, Tensor], Tensor]
) -> tuple[Capture, Tensor, dict[str, list[float]]]:
    """Three updates under observation; the loss and the gradients of the first."""
    capture = Capture()
    recording = Recording()
    recording.capture(capture)
    losses: list[Tensor] = []
    gradients: dict[str, list[float]] = {}
    with recording:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
        for _ in range(3):
            optimizer.zero_grad()
            loss = loss_of(model, data)
            loss.backward()
            losses.append(loss.detach().clone())
            gradients = gradients or gradients_of(model)
            optimizer.step()
            data.zero_()
    assert recording.problems == ()
    return capture, losses[0], gradients


@pytest.mark.parametrize(("build", "sample", "loss_of"), STEPS)
def test_the_first_step_can_be_made_again(
    build: Callable[[], nn.Module],
    sample: Callable[[], Tensor],
    loss_of: Callable[[nn.Module, Tensor], Tensor],
) -> None:
    torch.manual_seed(0)
    capture, first, gradients = trained(build(), sample(), loss_of)
    captured = capture.captured
    assert captured is not None
    args, kwargs, data = captured.batch
    again = captured.loss(captured.model(*args, **kwargs), data)
    again.backward()
    assert torch.equal(again.detach(), first)
    assert gradients_of(captured.model) == gradients
    assert captured.optimizer is not None
    held = [p for group in captured.optimizer.param_groups for p in group["params"]]
    assert {id(p) for p in held} == {id(p) for p in captured.model.parameters()}
    assert captured.optimizer.param_groups[0]["momentum"] == 0.9


def penalised(model: nn.Module, given: Tensor) -> Tensor:
    return regression(model, given) + sum(p.square().sum() for p in model.parameters())


def twice(model: nn.Module, given: Tensor) -> Tensor:
    return regression(model, given) + regression(model, 2 * given)


@pytest.mark.parametrize(
    ("loss_of", "why"), [(penalised, "more than the outputs of one model"), (twice, "several times")]
)
def test_a_loss_that_cannot_be_made_again_is_left_alone(
    loss_of: Callable[[nn.Module, Tensor], Tensor], why: str
) -> None:
    capture, _, _ = trained(nn.Linear(3, 1), torch.randn(5, 3), loss_of)
    assert capture.captured is None
    assert why in capture.why_not


SLOW = """\
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 5))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)
x, y = torch.randn(256, 10), torch.randint(0, 5, (256,))
for step in range(40):
    at = torch.randint(0, 256, (32,))
    optimizer.zero_grad()
    nn.CrossEntropyLoss()(model(x[at]), y[at]).backward()
    optimizer.step()
"""


def test_run_makes_experiments_on_an_unmodified_script(gradclinic, tmp_path):
    (tmp_path / "train.py").write_text(SLOW)
    ended = gradclinic("run", "--probe", "lr,batch", "--format", "json", "--output", "told.json", "train.py")
    assert ended.code == 0, ended.err
    told = json.loads((tmp_path / "told.json").read_text())
    rate, independent = told["conclusion"].splitlines()
    assert rate.startswith("lr: train with ")
    assert independent == "batch: 32 samples do not touch each other"
    (slow,) = [finding for finding in told["findings"] if finding["code"] == "GC306"]
    assert slow["location"]["line"] == 6
    assert {"runtime", "probe"} <= set(slow["sources"])
    assert "a rate that suits" in [evidence["label"] for evidence in slow["evidence"]]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--probe", "resume", "train.py"), "for 'resume' see `gradclinic probe`"),
        (("--probe", "lr", "--", "python", "train.py"), "without the launcher"),
    ],
)
def test_what_cannot_be_asked_of_a_run_is_said_in_one_line(gradclinic, tmp_path, words, why):
    (tmp_path / "train.py").write_text(SLOW)
    ended = gradclinic("run", *words)
    assert ended.code == 2
    assert why in ended.error_line
