"""Accumulation gives the gradient of the big batch, whatever the micro-batches are."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gradclinic import Clip, TrainStep
from tests.train.plain import (
    Batch,
    batches_of,
    big_batch_gradient,
    gradients_of,
    loss_of,
    same_bits,
    small_model,
    weights_of,
)


def sgd(model: torch.nn.Module) -> torch.optim.SGD:
    return torch.optim.SGD(model.parameters(), lr=0.1)


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=7),
    accumulate=st.integers(1, 4),
    summed=st.booleans(),
)
def test_every_window_has_the_gradient_of_its_big_batch(
    sizes: list[int], accumulate: int, summed: bool
) -> None:
    model = small_model()
    step = TrainStep(model, sgd(model), accumulate=accumulate)
    window: list[Batch] = []
    updates = 0
    for batch in step.over(batches_of(sizes)):
        window.append(batch)
        expected = big_batch_gradient(model, window)
        elements = batch[1].numel()
        loss = loss_of(model, batch)
        if summed:
            update = step(loss * elements, weight=elements, reduction="sum")
        else:
            update = step(loss, weight=elements)
        if update is not None:
            updates += 1
            for found, right in zip(gradients_of(model), expected, strict=True):
                torch.testing.assert_close(found, right, rtol=1e-12, atol=1e-12)
            window = []
    assert not window
    assert step.updates == updates == -(-len(sizes) // accumulate)


def test_the_loss_and_norm_reported_are_those_of_the_big_batch() -> None:
    model = small_model()
    batches = batches_of([2, 5, 3])
    whole = (torch.cat([x for x, _ in batches]), torch.cat([y for _, y in batches]))
    loss = loss_of(model, whole).item()
    norm = float(torch.cat([g.flatten() for g in big_batch_gradient(model, batches)]).norm())
    step = TrainStep(model, sgd(model), accumulate=3, clip=Clip.norm(1e-3))
    for batch in step.over(batches):
        update = step(loss_of(model, batch), weight=len(batch[0]))
    assert update is not None
    assert update.clipped
    assert update.loss == pytest.approx(loss, rel=1e-12)
    assert update.norm == pytest.approx(norm, rel=1e-12)
    assert set(update.norms) == {"0.weight", "0.bias", "2.weight", "2.bias"}


def test_a_loader_without_length_still_applies_its_tail() -> None:
    model = small_model()
    batches = batches_of([4, 4, 4])
    step = TrainStep(model, sgd(model), accumulate=2)
    seen = []
    step.listen(seen.append)
    for batch in step.over(iter(batches)):
        if step.updates == 1:
            expected = big_batch_gradient(model, [batch])
        step(loss_of(model, batch))
    assert [update.number for update in seen] == [1, 2]
    for found, right in zip(gradients_of(model), expected, strict=True):
        torch.testing.assert_close(found, right, rtol=1e-12, atol=1e-12)


def test_a_tail_can_be_dropped_and_leaks_nowhere() -> None:
    model = small_model()
    step = TrainStep(model, sgd(model), accumulate=2, tail="drop")
    for batch in step.over(batches_of([4, 4, 4])):
        step(loss_of(model, batch))
    assert (step.updates, step.dropped) == (1, 1)
    assert gradients_of(model) == []


def test_leaving_the_loop_drops_the_open_window() -> None:
    model = small_model()
    step = TrainStep(model, sgd(model), accumulate=4)
    before = weights_of(model)
    for number, batch in enumerate(step.over(batches_of([4] * 8))):
        step(loss_of(model, batch))
        if number == 1:
            break
    assert step.dropped == 2
    assert same_bits(before, weights_of(model))
    assert gradients_of(model) == []


def test_last_closes_the_window_before_leaving() -> None:
    model = small_model()
    batches = batches_of([4] * 8)
    expected = big_batch_gradient(model, batches[:2])
    step = TrainStep(model, sgd(model), accumulate=4)
    for number, batch in enumerate(step.over(batches)):
        if step(loss_of(model, batch), last=number == 1):
            break
    assert (step.updates, step.dropped) == (1, 0)
    for found, right in zip(gradients_of(model), expected, strict=True):
        torch.testing.assert_close(found, right, rtol=1e-12, atol=1e-12)


def test_an_empty_micro_batch_adds_nothing_although_its_mean_is_nan() -> None:
    model = small_model()
    full = batches_of([4])
    empty = batches_of([0])
    expected = big_batch_gradient(model, full)
    step = TrainStep(model, sgd(model), accumulate=2)
    for batch in step.over(empty + full):
        update = step(loss_of(model, batch), weight=len(batch[0]))
    assert update is not None
    assert update.applied
    for found, right in zip(gradients_of(model), expected, strict=True):
        torch.testing.assert_close(found, right, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("accumulate", [1, 2])
def test_a_window_of_empty_batches_moves_neither_weights_nor_schedule(accumulate: int) -> None:
    model = small_model()
    optimizer = sgd(model)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    step = TrainStep(model, optimizer, scheduler=schedule, accumulate=accumulate)
    before = weights_of(model)
    for batch in step.over(batches_of([0, 0])):
        update = step(loss_of(model, batch), weight=0)
    assert update is not None
    assert not update.applied
    assert step.updates == 0
    assert schedule.get_last_lr() == [0.1]
    assert same_bits(before, weights_of(model))


def test_a_batch_left_out_does_not_count() -> None:
    model = small_model()
    batches = batches_of([4, 4, 4])
    expected = big_batch_gradient(model, [batches[0], batches[2]])
    step = TrainStep(model, sgd(model), accumulate=3)
    for number, batch in enumerate(step.over(batches)):
        if number == 1:
            continue
        step(loss_of(model, batch))
    for found, right in zip(gradients_of(model), expected, strict=True):
        torch.testing.assert_close(found, right, rtol=1e-12, atol=1e-12)


def test_gradients_left_by_other_code_are_not_used() -> None:
    model = small_model()
    batch = batches_of([4])[0]
    expected = big_batch_gradient(model, [batch])
    step = TrainStep(model, sgd(model))
    for one in step.over([batch]):
        (100 * loss_of(model, one)).backward()
        step(loss_of(model, one))
    for found, right in zip(gradients_of(model), expected, strict=True):
        torch.testing.assert_close(found, right, rtol=1e-12, atol=1e-12)


def test_the_schedule_advances_once_per_update() -> None:
    model = small_model()
    optimizer = sgd(model)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    step = TrainStep(model, optimizer, scheduler=schedule, accumulate=4)
    rates = []
    step.listen(lambda update: rates.extend(update.learning_rates))
    for batch in step.over(batches_of([2] * 8)):
        step(loss_of(model, batch))
    assert rates == [0.1, 0.05]
    assert schedule.last_epoch == 2
