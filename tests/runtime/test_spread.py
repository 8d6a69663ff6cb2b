"""Histograms of gradients by power of two."""

from __future__ import annotations

import math

import torch

from gradclinic.facts.exponents import BINS, HIGHEST, LOWEST, edges, together
from gradclinic.runtime.statistics.spread import histograms


def test_each_number_falls_into_the_bin_of_its_size() -> None:
    zero_and_ones = torch.tensor([0.0, 0.0, 1.0, -1.5])
    strange = torch.tensor([math.inf, math.nan, 2.0 ** (HIGHEST + 20), 2.0 ** (LOWEST - 20)])
    counts = histograms({0: zero_and_ones, 2: strange}, 3)
    of_ones, of_nothing, of_strange = (counts[i * BINS : (i + 1) * BINS] for i in range(3))
    assert (of_ones[0], sum(of_ones)) == (2, 4)
    (place,) = [i for i, count in enumerate(of_ones) if count and i]
    assert of_ones[place] == 2
    assert 2.0 ** edges()[place - 1] <= 2.0
    assert not any(of_nothing)
    assert (of_strange[1], of_strange[-1]) == (1, 3)
    assert sum(together(counts)) == 8


def test_a_large_tensor_is_sampled_evenly() -> None:
    gradient = torch.cat([torch.full((50_000,), 1e-6), torch.full((50_000,), 1.0)])
    counts = histograms({0: gradient}, 1)
    assert len([count for count in counts if count]) == 2
    assert sum(counts) <= 1024
    small, large = (count for count in counts if count)
    assert abs(small - large) <= 1
