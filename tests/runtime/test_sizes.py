"""Norms read together are those of each tensor by itself, whatever the shapes do from update to update."""

from __future__ import annotations

import pytest
import torch

from gradclinic.runtime.statistics.sizes import Sizes


def tensors() -> list[torch.Tensor]:
    torch.manual_seed(0)
    shapes = [(8, 8), (8,), (), (100, 100), (8, 8), (8,), (), (8, 8), (8,), (), (8, 8), (8,), (), (0,)]
    return [torch.randn(shape) for shape in shapes] + [torch.randn(5, dtype=torch.float64)]


def norms(of: list[torch.Tensor]) -> list[float]:
    return [torch.linalg.vector_norm(tensor).item() for tensor in of]


def test_many_small_tensors_and_a_large_one() -> None:
    sizes, given = Sizes(), tensors()
    sizes.plan(given)
    found, told = sizes.read(given, [torch.tensor(3.0), torch.tensor(4.0, dtype=torch.float64)])
    assert found == pytest.approx(norms(given))
    assert told == [3.0, 4.0]


def test_an_update_that_leaves_some_out_and_brings_others() -> None:
    sizes, given = Sizes(), tensors()
    sizes.plan(given)
    fewer = given[2:]
    assert sizes.read(fewer, [])[0] == pytest.approx(norms(fewer))
    turned = given[::-1]
    assert sizes.read(turned, [])[0] == pytest.approx(norms(turned))
    assert sizes.read(given, [])[0] == pytest.approx(norms(given))


def test_what_is_not_finite_stays_so() -> None:
    sizes, given = Sizes(), tensors()
    given[4][0, 0] = float("nan")
    given[5][0] = float("inf")
    sizes.plan(given)
    found, _ = sizes.read(given, [])
    assert found[4] != found[4]
    assert found[5] == float("inf")
    assert all(value == value for place, value in enumerate(found) if place != 4)
