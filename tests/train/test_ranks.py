"""Two ranks train as one process with all the data would."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from gradclinic.train.ranks import Traffic
from tests.train.plain import batches_of, big_batch_gradient, same_bits, small_model, weights_of
from tests.train.ranks import RANKS, on_ranks
from tests.train.together import UNEVEN, tell_all


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    directory = tmp_path_factory.mktemp("together")
    return on_ranks(tell_all, directory, str(directory))


def test_uneven_inputs_train_on_every_sample_once(told: list[dict[str, Any]]) -> None:
    model = small_model()
    data = [batches_of(sizes, seed=rank) for rank, sizes in enumerate(UNEVEN)]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for start in (0, 2, 4):
        window = [batch for rank in data for batch in rank[start : start + 2]]
        for parameter, gradient in zip(model.parameters(), big_batch_gradient(model, window), strict=True):
            parameter.grad = gradient
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
    for rank in told:
        for found in rank["uneven_inputs"].values():
            for weight, right in zip(found, weights_of(model), strict=True):
                torch.testing.assert_close(weight, right, rtol=1e-12, atol=1e-12)


def test_gradients_are_reduced_once_per_window(told: list[dict[str, Any]]) -> None:
    size = sum(parameter.numel() * parameter.element_size() for parameter in small_model().parameters())
    for rank in told:
        reduced, deferred, really_sent = rank["bytes_reduced"]
        assert reduced == really_sent == 2 * size
        assert deferred == 6 * size
    assert str(Traffic(2_000_000, 6_000_000)) == "2.0 MB reduced, 6.0 MB saved (75 %)"


def test_a_window_closed_early_is_still_reduced(told: list[dict[str, Any]]) -> None:
    batches = [batch for rank in range(RANKS) for batch in batches_of([3, 5], seed=rank)]
    right = big_batch_gradient(small_model(), batches)
    for rank in told:
        for found in rank["window_closed_early"].values():
            for gradient, expected in zip(found, right, strict=True):
                torch.testing.assert_close(gradient, expected, rtol=1e-12, atol=1e-12)


def test_ranks_that_drift_apart_are_noticed(told: list[dict[str, Any]]) -> None:
    for rank in told:
        assert rank["one_rank_changes_a_weight"].startswith(
            "at update 2: 1 of 4 parameters differ between ranks, the first is '2.bias'"
        )


def test_noise_and_average_leave_the_ranks_equal(told: list[dict[str, Any]]) -> None:
    first, second = told
    for kind in ("DDP", "FSDP2"):
        assert same_bits(first["noise_and_average"][kind], second["noise_and_average"][kind])


def test_a_checkpoint_of_both_ranks_continues_bit_for_bit(told: list[dict[str, Any]]) -> None:
    for rank in told:
        for straight, resumed in rank["checkpoints"].values():
            assert same_bits(straight, resumed)


def test_what_cannot_work_says_so(told: list[dict[str, Any]]) -> None:
    for rank in told:
        assert "after 1 of 2 micro-batches, where FSDP2 holds" in rank["inside_a_sharded_window"]
        assert "call step(loss, weight=0)" in rank["a_forgotten_loss"]
        assert "was written by 2 ranks and this run has 1" in rank["a_checkpoint_of_two_ranks_on_one"]
