"""The terms of a sum are found by themselves, each with its own gradient."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from gradclinic.facts.terms import LossTerms
from gradclinic.runtime import Recording


def found(train: Callable[[], object]) -> list[LossTerms]:
    with Recording(own=[__file__]) as recording:
        train()
    assert recording.problems == ()
    return [case[0] for case in recording.observation().cases if isinstance(case[0], LossTerms)]


def test_each_term_is_named_and_measured_as_it_is_weighted():
    torch.manual_seed(0)
    model = nn.Linear(3, 1)
    x, y = torch.randn(8, 3), torch.randn(8, 1)
    wanted = {}

    def train():
        optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
        for _ in range(3):
            optimizer.zero_grad()
            fit = nn.functional.mse_loss(model(x), y)
            size = model.weight.square().sum()
            loss = fit - 0.5 * size
            loss.backward()
            optimizer.step()

    (objective,) = found(train)
    fit = nn.functional.mse_loss(model(x), y)
    wanted["fit"] = torch.autograd.grad(fit, [model.weight, model.bias])
    wanted["size"] = (-model.weight.detach(),)
    assert [term.name for term in objective.terms] == ["fit", "size"]
    for term in objective.terms:
        norm = torch.cat([gradient.flatten() for gradient in wanted[term.name]]).norm()
        assert term.norm == pytest.approx(norm.item(), rel=1e-4)
    (pair,) = objective.cosines
    product = (wanted["fit"][0] * wanted["size"][0]).sum().item()
    one, other = objective.terms
    assert pair.cosine == pytest.approx(product / (one.norm * other.norm), rel=1e-4)


def test_nothing_goes_back_twice_where_a_hook_would_see_it():
    torch.manual_seed(0)
    model = nn.Linear(3, 1)
    seen = []

    def train():
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model.weight.register_hook(lambda gradient: seen.append(gradient.norm()))
        for _ in range(4):
            optimizer.zero_grad()
            loss = model(torch.randn(8, 3)).square().mean() + model.weight.abs().sum()
            loss.backward()
            optimizer.step()

    assert found(train) == []
    assert len(seen) == 4
