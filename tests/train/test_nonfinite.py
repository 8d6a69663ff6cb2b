"""A NaN never reaches a weight without being counted, undone or raised."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from gradclinic import Clip, TrainStep
from gradclinic.train import NonFiniteError
from tests.train.plain import batches_of, loss_of, same_bits, small_model, train, weights_of


def poisoned(count: int, bad: set[int]) -> list[tuple[torch.Tensor, torch.Tensor]]:
    batches = batches_of([4] * count, torch.float32)
    for number in bad:
        batches[number][0][0, 0] = float("nan")
    return batches


@pytest.mark.parametrize(
    "clip", [None, Clip.norm(1.0), Clip.value(0.1), Clip.norm(1.0, per="layer")], ids=repr
)
def test_a_bad_update_is_skipped_and_counted(clip: Clip | None) -> None:
    model = small_model(torch.float32)
    optimizer = torch.optim.AdamW(model.parameters())
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    step = TrainStep(model, optimizer, scheduler=schedule, clip=clip)
    for number, batch in enumerate(step.over(poisoned(3, {1}))):
        before = weights_of(model)
        update = step(loss_of(model, batch))
        assert update is not None
        assert update.applied is (number != 1)
        assert same_bits(before, weights_of(model)) is (number == 1)
        if number == 1:
            assert update.nonfinite == ("0.weight", "0.bias", "2.weight", "2.bias")
            assert "not finite" in update.skipped
    assert (step.updates, step.skipped, schedule.last_epoch) == (2, 1, 2)


def test_stop_leaves_the_weights_as_they_were() -> None:
    model = small_model(torch.float32)
    step = TrainStep(model, torch.optim.AdamW(model.parameters()), nonfinite="stop")
    before = weights_of(model)
    with pytest.raises(NonFiniteError, match=r"the gradient of '0.weight' is NaN or infinite \(4 of 4 are\)"):
        train(step, model, poisoned(1, {0}))
    assert same_bits(before, weights_of(model))


def test_rollback_undoes_the_update_before() -> None:
    model = nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4), nn.Linear(4, 3))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    step = TrainStep(model, optimizer, scheduler=schedule, nonfinite="rollback", ema=0.9)
    for number, batch in enumerate(step.over(poisoned(3, {2}))):
        loss = loss_of(model, batch)
        if number == 1:
            good = weights_of(model)
        update = step(loss)
    assert update is not None
    assert update.skipped == "gradients were not finite; rolled back to update 1"
    assert (step.updates, step.rollbacks, schedule.last_epoch) == (1, 1, 1)
    assert same_bits(good, weights_of(model))


def test_running_statistics_that_became_nan_are_not_kept_silently() -> None:
    model = nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4), nn.Linear(4, 3))
    step = TrainStep(model, torch.optim.SGD(model.parameters(), lr=0.1))
    with pytest.raises(NonFiniteError, match=r"the first is '1.running_mean'"):
        train(step, model, poisoned(2, {0}))


def test_a_run_that_only_skips_is_stopped() -> None:
    model = small_model(torch.float32)
    step = TrainStep(model, torch.optim.SGD(model.parameters(), lr=0.1))
    with pytest.raises(NonFiniteError, match="not finite 21 times in a row"):
        train(step, model, poisoned(40, set(range(40))))


def test_an_update_that_makes_weights_infinite_is_not_silent() -> None:
    model = small_model(torch.float32)
    step = TrainStep(model, torch.optim.SGD(model.parameters(), lr=float("inf")))
    with pytest.raises(NonFiniteError, match="after 1 updates, 4 weights"):
        train(step, model, poisoned(1, set()))


def test_large_finite_gradients_are_clipped_not_skipped() -> None:
    """The squares of 1e25 overflow float32; the norm does not have to."""
    model = small_model(torch.float32)
    step = TrainStep(model, torch.optim.SGD(model.parameters(), lr=0.1), clip=Clip.norm(1.0))
    for batch in step.over(poisoned(1, set())):
        update = step(loss_of(model, batch) * 1e25)
    assert update is not None
    assert update.applied
    assert 1e24 < update.norm < 1e26
    clipped = torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])
    assert float(clipped.norm()) == pytest.approx(1.0, rel=1e-5)


def test_float16_overflow_halves_the_scale_and_holds_the_schedule() -> None:
    model = small_model(torch.float32)
    optimizer = torch.optim.AdamW(model.parameters())
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    step = TrainStep(model, optimizer, scheduler=schedule, precision="fp16")
    before = weights_of(model)
    for number, batch in enumerate(step.over(poisoned(2, set()))):
        loss = loss_of(model, batch) * (1e36 if number == 0 else 1.0)
        update = step(loss)
        assert update is not None
        if number == 0:
            assert update.skipped == "gradients overflowed at loss scale 65536"
            assert same_bits(before, weights_of(model))
    assert update.applied
    assert update.loss_scale == 32768
    assert (step.updates, step.skipped, schedule.last_epoch) == (1, 1, 1)


def test_autocast_holds_from_the_batch_to_its_loss_only() -> None:
    model = small_model(torch.float32)
    step = TrainStep(model, torch.optim.SGD(model.parameters(), lr=0.1), precision="bf16")
    during_backward = []
    model[2].weight.register_hook(lambda gradient: during_backward.append(torch.is_autocast_enabled("cpu")))
    for batch in step.over(poisoned(2, set())):
        assert torch.is_autocast_enabled("cpu")
        output = model(batch[0])
        assert output.dtype is torch.bfloat16
        step(nn.functional.mse_loss(output, batch[1]))
        assert not torch.is_autocast_enabled("cpu")
    assert during_backward == [False, False]


def test_the_loss_scale_loads_what_gradscaler_saved() -> None:
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    scaler.scale(torch.ones(1))
    model = small_model(torch.float32)
    step = TrainStep(model, torch.optim.SGD(model.parameters(), lr=0.1), precision="fp16")
    assert step.updater.scale is not None
    step.updater.scale.load_state_dict(scaler.state_dict())
    assert step.updater.loss_scale == 1024.0
