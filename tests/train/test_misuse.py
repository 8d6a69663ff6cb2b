"""Used wrongly, a step says what is wrong and what to do, and changes nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from gradclinic import Clip, Noise, TrainStep, checkpoint_activations, parameter_groups
from gradclinic.train import TrainStepError
from tests.train.plain import Batch, batches_of, gradients_of, loss_of, same_bits, small_model, weights_of


def built(model: nn.Module, **options: object) -> TrainStep:
    return TrainStep(model, torch.optim.SGD(model.parameters(), lr=0.1), **options)


WRONG_LOSSES: dict[str, tuple[Callable[[nn.Module, Batch], object], str]] = {
    "a number": (lambda m, b: loss_of(m, b).item(), "was given a float as loss"),
    "no graph": (lambda m, b: loss_of(m, b).detach(), "without a graph"),
    "not reduced": (lambda m, b: (m(b[0]) - b[1]).square(), r"of shape \(4, 3\)"),
    "two": (lambda m, b: (loss_of(m, b), loss_of(m, b)), "was given 2 losses in a tuple"),
    "another model": (lambda m, b: loss_of(small_model(seed=9), b), "of another model"),
    "no terms": (lambda m, b: {}, "at least one named loss term"),
}


@pytest.mark.parametrize("name", WRONG_LOSSES)
def test_a_loss_that_cannot_train_is_refused(name: str) -> None:
    wrong, message = WRONG_LOSSES[name]
    model = small_model()
    step = built(model, accumulate=2)
    batches = batches_of([4, 4])
    for number, batch in enumerate(step.over(batches)):
        if number == 0:
            step(loss_of(model, batch))
            continue
        weights, gradients = weights_of(model), gradients_of(model)
        with pytest.raises(TrainStepError, match=message):
            step(wrong(model, batch))  # type: ignore[arg-type]
        assert same_bits(weights, weights_of(model))
        assert same_bits(gradients, gradients_of(model))
        step(loss_of(model, batch))
    assert step.updates == 1


def test_outside_a_pass_there_is_no_step() -> None:
    model = small_model()
    step = built(model)
    batch = batches_of([4])[0]
    with pytest.raises(TrainStepError, match=r"inside `for batch in step.over\(loader\):`"):
        step(loss_of(model, batch))
    assert gradients_of(model) == []
    for one in step.over([batch]):
        step(loss_of(model, one))
    with pytest.raises(TrainStepError, match="outside a pass"):
        step(loss_of(model, batch))


def test_one_batch_has_one_loss() -> None:
    model = small_model()
    step = built(model)
    for batch in step.over(batches_of([4])):
        step(loss_of(model, batch))
        weights = weights_of(model)
        with pytest.raises(TrainStepError, match="a second loss for one batch"):
            step(loss_of(model, batch))
        assert same_bits(weights, weights_of(model))


def test_a_loop_that_never_steps_is_told() -> None:
    model = small_model()
    step = built(model)
    with pytest.raises(TrainStepError, match=r"3 batches went by and step\(\) was not called once"):
        list(step.over(batches_of([4, 4, 4])))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"weight": -1}, "a finite count"),
        ({"weight": float("nan")}, "a finite count"),
        ({"weight": torch.ones(2)}, "expected one number"),
        ({"reduction": "sum"}, "without a weight"),
        ({"reduction": "median"}, "expected 'mean' or 'sum'"),
    ],
)
def test_a_weight_must_be_a_count(arguments: dict[str, object], message: str) -> None:
    model = small_model()
    step = built(model)
    for batch in step.over(batches_of([4])):
        with pytest.raises(TrainStepError, match=message):
            step(loss_of(model, batch), **arguments)  # type: ignore[arg-type]
        assert gradients_of(model) == []
        step(loss_of(model, batch))


def test_weights_are_given_for_a_whole_window_or_not_at_all() -> None:
    model = small_model()
    step = built(model, accumulate=2)
    for number, batch in enumerate(step.over(batches_of([4, 4]))):
        if number == 0:
            step(loss_of(model, batch), weight=4)
        else:
            with pytest.raises(
                TrainStepError, match="for some micro-batches of this window and none for others"
            ):
                step(loss_of(model, batch))
            step(loss_of(model, batch), weight=4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"accumulate": 0}, "a whole number of micro-batches"),
        ({"accumulate": 2.5}, "a whole number of micro-batches"),
        ({"clip": 1.0}, r"such as Clip.norm\(1.0\)"),
        ({"precision": "int8"}, "expected 'fp32', 'bf16', 'fp16'"),
        ({"nonfinite": "ignore"}, "expected 'skip', 'stop' or 'rollback'"),
        ({"tail": "keep"}, "expected 'step' or 'drop'"),
        ({"ema": 1.5}, r"a decay in \(0, 1\)"),
        ({"unfreeze": {5: ["body"]}}, "'body' matches no parameter"),
        ({"scheduler": "cosine"}, "was given str; expected a torch LR scheduler"),
    ],
)
def test_options_are_checked_when_the_step_is_built(options: dict[str, object], message: str) -> None:
    with pytest.raises(TrainStepError, match=message):
        built(small_model(), **options)


def test_parts_that_do_not_belong_together_are_refused() -> None:
    model, other = small_model(), small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    stale = torch.optim.SGD(other.parameters(), lr=0.1)
    with pytest.raises(TrainStepError, match="holds no parameter of the model"):
        TrainStep(model, stale)
    with pytest.raises(TrainStepError, match="schedules another optimizer"):
        TrainStep(model, optimizer, scheduler=torch.optim.lr_scheduler.ConstantLR(stale))
    with pytest.raises(TrainStepError, match="follows a metric"):
        TrainStep(model, optimizer, scheduler=torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer))
    with pytest.raises(TrainStepError, match="cannot drive LBFGS"):
        TrainStep(model, torch.optim.LBFGS(model.parameters()))
    with pytest.raises(TrainStepError, match="holds float16 weights"):
        built(small_model(torch.float16))
    with pytest.raises(TrainStepError, match="one forward has one precision"):
        built(model).over([], also=[built(other, precision="bf16")])


@pytest.mark.parametrize(
    "make",
    [
        lambda: Clip.norm(0),
        lambda: Clip.norm(float("inf")),
        lambda: Clip.norm(1.0, per="tensor"),  # type: ignore[arg-type]
        lambda: Clip.value(-1),
        lambda: Clip.adaptive(quantile=0),
        lambda: Clip.adaptive(history=2),
        lambda: Noise(eta=0),
        lambda: parameter_groups(small_model(), lr=0.1, layers=["stem"]),
        lambda: checkpoint_activations(small_model(), ["stem"]),
    ],
)
def test_parts_check_their_own_arguments(make: Callable[[], object]) -> None:
    with pytest.raises(TrainStepError, match=r"expected|named_modules"):
        make()


def test_a_new_pass_closes_one_that_was_left_by_an_error() -> None:
    model = small_model()
    step = built(model, accumulate=4, precision="bf16")
    batches = batches_of([4, 4], torch.float32)
    model.float()
    abandoned = step.over(batches)
    step_loss: Tensor = loss_of(model, next(abandoned))
    step(step_loss)
    for batch in step.over(batches):
        step(loss_of(model, batch))
    del abandoned
    assert (step.updates, step.dropped) == (1, 1)
    assert not torch.is_autocast_enabled("cpu")
