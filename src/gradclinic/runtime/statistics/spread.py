"""How the sizes of gradients are spread, from an even sample of each tensor."""

from __future__ import annotations

from array import array
from collections.abc import Mapping

import torch

from gradclinic.facts.exponents import BINS, LOWEST, WIDTH

_MOST = 1024
"""Numbers looked at in each tensor."""


def histograms(gradients: Mapping[int, torch.Tensor], tensors: int) -> array[float]:
    """For each of so many tensors the counts of its bins, laid end to end; by one transfer for all."""
    if not gradients:
        return array("f")
    chosen = [_sample(gradient) for gradient in gradients.values()]
    values = torch.cat(chosen)
    _, exponents = torch.frexp(values)
    bins = (exponents - LOWEST).div(WIDTH, rounding_mode="floor").clamp_(0, BINS - 2).add_(1)
    bins[values == 0] = 0
    bins[~torch.isfinite(values)] = BINS - 1
    lengths = torch.tensor([len(one) for one in chosen], device=values.device)
    first = torch.tensor(list(gradients), device=values.device) * BINS
    counts = torch.bincount(bins + first.repeat_interleave(lengths), minlength=tensors * BINS)
    return array("f", counts.tolist())


def _sample(gradient: torch.Tensor) -> torch.Tensor:
    flat = gradient.detach().reshape(-1)
    return flat[:: max(1, -(-flat.numel() // _MOST))].float()
