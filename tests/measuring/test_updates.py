"""What is written down of an update is what the update really used."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional

from tests.measuring.training import measured


def linear() -> tuple[nn.Linear, torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    return nn.Linear(4, 1), torch.randn(16, 4), torch.randn(16, 1)


def test_loss_gradient_norm_and_update_are_those_of_the_loop():
    model, x, y = linear()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses, norms = [], []

    def train():
        for _ in range(7):
            optimizer.zero_grad()
            loss = functional.mse_loss(model(x), y)
            loss.backward()
            losses.append(loss.item())
            norms.append(math.hypot(*(p.grad.norm().item() for p in model.parameters())))
            optimizer.step()

    (training,) = measured(train)
    assert [step.loss for step in training.steps] == losses
    assert [step.norm for step in training.steps] == pytest.approx(norms)
    assert [tensor.name for tensor in training.tensors] == ["weight", "bias"]
    sample = training.samples[0]
    assert sample.updates[0] == pytest.approx(0.1 * training.steps[0].gradients[0], rel=1e-4)
    assert sample.against == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("fused", [False, True])
def test_the_loss_scale_is_taken_out_whoever_unscales(fused):
    model, x, y = linear()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0, fused=fused)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)

    def train():
        for _ in range(3):
            optimizer.zero_grad()
            scaler.scale(functional.mse_loss(model(x), y)).backward()
            scaler.step(optimizer)
            scaler.update()

    (training,) = measured(train)
    expected = torch.autograd.grad(functional.mse_loss(model(x), y), list(model.parameters()))
    assert training.steps[1].norm == pytest.approx(math.hypot(*(g.norm().item() for g in expected)), rel=1e-4)
    assert training.steps[1].loss == pytest.approx(functional.mse_loss(model(x), y).item())
    assert training.steps[1].scale == 1024.0


@pytest.mark.parametrize("fused", [False, True])
def test_an_update_the_scaler_skipped_is_known_as_skipped(fused):
    model, x, y = linear()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, fused=fused)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127)

    def train():
        for _ in range(3):
            optimizer.zero_grad()
            scaler.scale(functional.mse_loss(1e3 * model(x), y)).backward()
            scaler.step(optimizer)
            scaler.update()

    (training,) = measured(train)
    assert [step.skipped for step in training.steps] == [True, True, True]
    assert training.skipped == 3
    assert training.breakdown is None


def test_the_norm_before_clipping_and_the_one_after():
    model, x, y = linear()

    def train():
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        functional.mse_loss(100 * model(x), y).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()

    (training,) = measured(train)
    (step,) = training.steps
    assert step.norm > 100
    assert step.used == pytest.approx(0.5, rel=1e-3)
    assert step.clipped


def test_micro_batches_are_averaged_and_losses_of_two_lines_added():
    model, x, y = linear()

    def accumulated():
        optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
        for _ in range(4):
            functional.mse_loss(model(x), y).backward()
        optimizer.step()

    def two_losses():
        optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
        optimizer.zero_grad()
        functional.mse_loss(model(x), y).backward()
        functional.l1_loss(model(x), y).backward()
        optimizer.step()

    plain = functional.mse_loss(model(x), y).item()
    other = functional.l1_loss(model(x), y).item()
    assert measured(accumulated)[0].steps[0].loss == pytest.approx(plain)
    assert measured(two_losses)[0].steps[0].loss == pytest.approx(plain + other)


def test_each_side_of_a_game_has_its_own_loss():
    torch.manual_seed(0)
    generator, judge = nn.Linear(2, 4), nn.Linear(4, 1)
    told: dict[str, list[float]] = {"g": [], "d": []}

    def train():
        optimizer_g = torch.optim.SGD(generator.parameters(), lr=0.1)
        optimizer_d = torch.optim.SGD(judge.parameters(), lr=0.1)
        for _ in range(3):
            fake = generator(torch.randn(8, 2))
            judge.zero_grad()
            loss_d = judge(fake.detach()).mean() - judge(torch.randn(8, 4)).mean()
            loss_d.backward()
            optimizer_d.step()
            optimizer_g.zero_grad()
            loss_g = -judge(fake).mean()
            loss_g.backward()
            optimizer_g.step()
            told["d"].append(loss_d.item())
            told["g"].append(loss_g.item())

    by_name = {training.optimizer.name: training for training in measured(train)}
    assert [step.loss for step in by_name["optimizer_d"].steps] == told["d"]
    assert [step.loss for step in by_name["optimizer_g"].steps] == told["g"]
    assert not by_name["optimizer_g"].alone


def test_a_closure_is_measured_after_it_ran():
    model, x, y = linear()
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=1)

    def closure():
        optimizer.zero_grad()
        loss = functional.mse_loss(model(x), y)
        loss.backward()
        return loss

    (training,) = measured(lambda: optimizer.step(closure))
    assert training.steps[0].norm > 0
    assert training.steps[0].loss is not None


def test_large_finite_gradients_are_no_breakdown():
    model, _, _ = linear()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)

    def train():
        for parameter in model.parameters():
            parameter.grad = torch.full_like(parameter, 1e30)
        optimizer.step()

    (training,) = measured(train)
    assert training.breakdown is None


def test_memory_of_a_long_run_is_bounded():
    model, x, y = linear()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def train():
        for _ in range(2000):
            optimizer.zero_grad()
            functional.mse_loss(model(x), y).backward()
            optimizer.step()

    (training,) = measured(train)
    assert training.taken == 2000
    assert len(training.steps) < 600
    assert [step.index for step in training.steps[:3]] == [0, 1, 2]
    assert training.steps[-1].index == 1999


def test_a_sparse_gradient_counts_a_row_that_was_looked_up_twice_once():
    torch.manual_seed(0)
    embedding = nn.Embedding(10, 3, sparse=True)
    optimizer = torch.optim.SGD(embedding.parameters(), lr=0.1)
    rows = torch.tensor([1, 1, 1, 4])
    norms = []

    def train():
        for _ in range(3):
            optimizer.zero_grad()
            embedding(rows).square().sum().backward()
            norms.append(embedding.weight.grad.to_dense().norm().item())
            optimizer.step()

    (training,) = measured(train)
    assert [step.norm for step in training.steps] == pytest.approx(norms)
