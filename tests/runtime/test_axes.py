"""Axes on the way to the loss: which one a softmax normalises, and which ones a difference spreads over."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from gradclinic.facts import LossCall, SoftmaxUse
from gradclinic.runtime import Recording


def facts(loss: Callable[[torch.Tensor], torch.Tensor], *, features: int) -> list[object]:
    """What one step is known by whose loss is made of a layer's output for 12 samples."""
    with Recording() as recording:
        layer = nn.Linear(4, features)
        optimizer = torch.optim.SGD(layer.parameters(), lr=0.01)
        loss(layer(torch.randn(12, 4))).backward()
        optimizer.step()
    assert recording.problems == ()
    return [fact for case in recording.observation().cases for fact in case]


VALUES = torch.randn(12, 5, 3)


@pytest.mark.parametrize(
    "pooled",
    [
        lambda weights: torch.einsum("bn,bnd->bd", weights, VALUES),
        lambda weights: (weights.unsqueeze(-1) * VALUES).sum(1),
        lambda weights: (weights[..., None] * VALUES).sum(dim=-2),
        lambda weights: weights.unsqueeze(1) @ VALUES,
    ],
)
def test_weights_normalised_over_samples_are_told_from_those_over_what_they_sum(
    pooled: Callable[[torch.Tensor], torch.Tensor],
) -> None:
    def uses(axis: int) -> list[object]:
        found = facts(lambda scores: pooled(scores.softmax(axis)).pow(2).mean(), features=5)
        return [fact for fact in found if isinstance(fact, SoftmaxUse)]

    assert len(uses(0)) == 1
    assert uses(1) == []


@pytest.mark.parametrize(
    "pooled",
    [
        lambda weights: (weights * VALUES).sum(1),
        lambda weights: weights.transpose(1, 2) @ VALUES,
    ],
)
def test_weights_normalised_one_by_one_are_all_one(pooled: Callable[[torch.Tensor], torch.Tensor]) -> None:
    def uses(axis: int) -> list[object]:
        found = facts(lambda scores: pooled(scores[..., None].softmax(axis)).pow(2).mean(), features=5)
        return [fact for fact in found if isinstance(fact, SoftmaxUse)]

    assert len(uses(-1)) == 1
    assert uses(1) == []


@pytest.mark.parametrize(
    "use",
    [
        lambda nodes: (nodes.unsqueeze(-1) * VALUES).sum(0),  # attention over all nodes of one graph
        lambda nodes: torch.einsum("nh,nhd->hd", nodes, VALUES),
        lambda assigned: assigned.t() @ VALUES[:, 0],  # soft clusters of all samples
    ],
)
def test_weights_summed_over_the_samples_may_be_normalised_over_them(
    use: Callable[[torch.Tensor], torch.Tensor],
) -> None:
    found = facts(lambda scores: use(scores.softmax(0)).pow(2).mean(), features=5)

    assert not [fact for fact in found if isinstance(fact, SoftmaxUse)]


def differences(loss: Callable[[torch.Tensor], torch.Tensor]) -> list[LossCall]:
    found = facts(loss, features=1)
    return [fact for fact in found if isinstance(fact, LossCall) and fact.loss == "difference"]


TARGET = torch.randn(12)


@pytest.mark.parametrize(
    "loss",
    [
        lambda predicted: ((predicted - TARGET) ** 2).mean(),
        lambda predicted: (torch.sqrt(1 + ((TARGET - predicted) / 0.5) ** 2) - 1).mean(),
        lambda predicted: torch.maximum(0.9 * (TARGET - predicted), -0.1 * (TARGET - predicted)).mean(),
    ],
)
def test_a_column_less_a_row_is_a_table_of_differences(loss: Callable[[torch.Tensor], torch.Tensor]) -> None:
    (call,) = differences(loss)

    assert {call.input_shape, call.target_shape} == {(12, 1), (12,)}


def test_a_kernel_between_two_sets_compares_every_pair_on_purpose() -> None:
    assert differences(lambda drawn: torch.exp(-((drawn - TARGET) ** 2)).mean()) == []
