"""What composes with a step: terms, several optimizers, averages, noise, groups, unfreezing, compile."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import nn

from gradclinic import Clip, Noise, TrainStep, checkpoint_activations, parameter_groups
from tests.train.plain import batches_of, gradients_of, loss_of, same_bits, small_model, weights_of


def test_named_terms_train_as_their_weighted_sum_and_are_measured_apart() -> None:
    model, by_hand = small_model(), small_model()
    batch = batches_of([4])[0]
    (loss_of(by_hand, batch) + 0.1 * by_hand(batch[0]).abs().mean()).backward()
    step = TrainStep(
        model,
        torch.optim.SGD(model.parameters(), lr=0.1),
        terms={"fit": 1.0, "size": 0.1},
        term_norms_every=1,
    )
    for one in step.over([batch]):
        update = step({"fit": loss_of(model, one), "size": model(one[0]).abs().mean()})
    assert update is not None
    for found, right in zip(gradients_of(model), gradients_of(by_hand), strict=True):
        torch.testing.assert_close(found, right, rtol=1e-12, atol=1e-14)
    alone = torch.autograd.grad(0.1 * by_hand(batch[0]).abs().mean(), list(by_hand.parameters()))
    size = float(torch.cat([gradient.flatten() for gradient in alone]).norm())
    assert update.term_norms["size"] == pytest.approx(size, rel=1e-9)
    assert update.term_norms["fit"] > 0


def gan(accumulate: int) -> tuple[nn.Module, nn.Module, TrainStep, TrainStep]:
    torch.manual_seed(0)
    generator, critic = nn.Linear(2, 5).double(), nn.Linear(5, 1).double()
    critic_step = TrainStep(
        critic, torch.optim.SGD(critic.parameters(), lr=0.1), accumulate=accumulate, clip=Clip.norm(1.0)
    )
    generator_step = TrainStep(
        generator, torch.optim.SGD(generator.parameters(), lr=0.1), accumulate=accumulate
    )
    return generator, critic, critic_step, generator_step


@pytest.mark.parametrize("accumulate", [1, 3])
def test_a_gan_is_two_steps_and_no_loss_leaks_into_the_other_model(accumulate: int) -> None:
    generator, critic, critic_step, generator_step = gan(accumulate)
    noises = [torch.randn(4, 2, dtype=torch.float64) for _ in range(6)]
    real = torch.randn(4, 5, dtype=torch.float64)
    for noise in critic_step.over(noises, also=[generator_step]):
        critic_step(critic(generator(noise).detach()).mean() - critic(real).mean())
        generator_step(-critic(generator(noise)).mean())
    ours = weights_of(generator) + weights_of(critic)

    generator, critic, _, _ = gan(accumulate)
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.1) for model in (critic, generator)]
    kept: dict[nn.Module, list[torch.Tensor]] = {}
    for number, noise in enumerate(noises):
        losses = {
            critic: lambda: critic(generator(noise).detach()).mean() - critic(real).mean(),  # noqa: B023
            generator: lambda: -critic(generator(noise)).mean(),  # noqa: B023
        }
        for (model, loss), optimizer in zip(losses.items(), optimizers, strict=True):
            found = torch.autograd.grad(loss() / accumulate, list(model.parameters()))
            kept[model] = [a + b for a, b in itertools.zip_longest(kept.get(model, []), found, fillvalue=0.0)]
            if (number + 1) % accumulate == 0:
                for parameter, gradient in zip(model.parameters(), kept.pop(model), strict=True):
                    parameter.grad = gradient
                if model is critic:
                    nn.utils.clip_grad_norm_(critic.parameters(), 1.0)
                optimizer.step()
    for found, right in zip(ours, weights_of(generator) + weights_of(critic), strict=True):
        torch.testing.assert_close(found, right, rtol=1e-12, atol=1e-14)


def test_joined_steps_each_get_autocast_for_their_own_forward() -> None:
    one, two = small_model(torch.float32), small_model(torch.float32, seed=3)
    first = TrainStep(one, torch.optim.SGD(one.parameters(), lr=0.1), precision="bf16")
    second = TrainStep(two, torch.optim.SGD(two.parameters(), lr=0.1), precision="bf16")
    for batch in first.over(batches_of([4, 4], torch.float32), also=[second]):
        for model, step in ((one, first), (two, second)):
            assert torch.is_autocast_enabled("cpu")
            step(loss_of(model, batch))
        assert not torch.is_autocast_enabled("cpu")


def test_two_optimizers_of_one_model_step_together() -> None:
    model = small_model()
    optimizers = [torch.optim.SGD(model[0].parameters(), lr=0.1), torch.optim.AdamW(model[2].parameters())]
    before = weights_of(model)
    step = TrainStep(model, optimizers, clip=Clip.norm(1e-3))
    for batch in step.over(batches_of([4])):
        step(loss_of(model, batch))
    assert not any(map(torch.equal, before, weights_of(model)))
    together = torch.cat([gradient.flatten() for gradient in gradients_of(model)])
    assert float(together.norm()) == pytest.approx(1e-3, rel=1e-2)


def test_the_average_is_its_own_memory_and_can_be_evaluated() -> None:
    model = small_model()
    start = weights_of(model)
    step = TrainStep(model, torch.optim.SGD(model.parameters(), lr=0.1), ema=0.75)
    for batch in step.over(batches_of([4])):
        step(loss_of(model, batch))
    live = weights_of(model)
    with step.ema.applied():
        for found, old, new in zip(weights_of(model), start, live, strict=True):
            torch.testing.assert_close(found, 0.75 * old + 0.25 * new)
    assert same_bits(live, weights_of(model))
    pointers = {tensor.data_ptr() for tensor in step.ema.state_dict()["average"]}
    assert pointers.isdisjoint(parameter.data_ptr() for parameter in model.parameters())


def test_noise_leaves_the_users_random_stream_alone() -> None:
    model = small_model()
    step = TrainStep(model, torch.optim.SGD(model.parameters(), lr=0.1), noise=Noise(eta=1.0))
    batch = batches_of([4])[0]
    torch.manual_seed(5)
    expected = torch.randn(3)
    torch.manual_seed(5)
    for one in step.over([batch]):
        clean = torch.autograd.grad(loss_of(model, one), list(model.parameters()))
        step(loss_of(model, one))
    assert torch.equal(torch.randn(3), expected)
    added = torch.cat([(a - b).flatten() for a, b in zip(gradients_of(model), clean, strict=True)])
    assert 0.7 < float(added.std()) < 1.3


def test_adaptive_clipping_follows_the_norms_it_has_seen() -> None:
    model = small_model()
    clip = Clip.adaptive(quantile=0.5, history=20)
    step = TrainStep(model, torch.optim.SGD(model.parameters(), lr=0.0), clip=clip)
    batch = batches_of([4])[0]
    updates = []
    step.listen(updates.append)
    for number in step.over(range(12)):
        step(loss_of(model, batch) * (100.0 if number == 11 else 1.0))
    assert not any(update.clipped for update in updates[:10])
    assert updates[11].clipped
    after = float(torch.cat([gradient.flatten() for gradient in gradients_of(model)]).norm())
    assert after == pytest.approx(updates[0].norm, rel=1e-4)


def test_groups_spare_norms_and_biases_and_slow_early_layers() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.Linear(4, 2))
    groups = parameter_groups(model, lr=0.1, weight_decay=0.01, layers=["0", "2"], layer_decay=0.5)
    by_parameter = {id(p): (g["lr"], g["weight_decay"]) for g in groups for p in g["params"]}
    assert by_parameter[id(model[0].weight)] == (0.05, 0.01)
    assert by_parameter[id(model[0].bias)] == (0.05, 0.0)
    assert by_parameter[id(model[1].weight)] == (0.1, 0.0)
    assert by_parameter[id(model[2].weight)] == (0.1, 0.01)
    assert len(by_parameter) == len(list(model.parameters()))


def test_frozen_parts_do_not_move_until_their_update() -> None:
    model = small_model()
    step = TrainStep(
        model, torch.optim.AdamW(model.parameters(), lr=0.1, weight_decay=0.1), unfreeze={0: ["2"], 2: ["0"]}
    )
    moved = []
    for batch in step.over(batches_of([4] * 4)):
        before = model[0].weight.detach().clone()
        step(loss_of(model, batch))
        moved.append(not torch.equal(before, model[0].weight))
    assert moved == [False, False, True, True]


def test_activation_checkpointing_changes_no_gradient_with_dropout_in_it() -> None:
    results = []
    for wanted in ((), ("0", "1")):
        torch.manual_seed(0)
        model = nn.Sequential(
            nn.Sequential(nn.Linear(5, 16), nn.Dropout(0.5)), nn.Sequential(nn.Tanh(), nn.Linear(16, 3))
        )
        checkpoint_activations(model, wanted)
        step = TrainStep(model, torch.optim.SGD(model.parameters(), lr=0.1), accumulate=2, precision="bf16")
        for batch in step.over(batches_of([4, 4], torch.float32)):
            step(loss_of(model, batch))
        results.append(weights_of(model))
    assert same_bits(*results)


def test_a_compiled_model_steps_as_the_plain_one_does() -> None:
    results = []
    for compiled in (False, True):
        model = small_model()
        called = torch.compile(model, backend="aot_eager") if compiled else model
        optimizer = torch.optim.AdamW(called.parameters())
        step = TrainStep(called, optimizer, accumulate=2, clip=Clip.norm(0.1), ema=0.9)
        for batch in step.over(batches_of([4] * 4)):
            update = step(nn.functional.mse_loss(called(batch[0]), batch[1]))
        assert update is not None
        assert list(update.norms) == ["0.weight", "0.bias", "2.weight", "2.bias"]
        results.append(weights_of(model))
    for found, right in zip(*results, strict=True):
        torch.testing.assert_close(found, right, rtol=1e-9, atol=1e-12)
