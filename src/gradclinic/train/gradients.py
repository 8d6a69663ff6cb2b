"""The gradients of a finished window: measured once, then scaled at most once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gradclinic.train.layout import HALF_PRECISION, Layout


@dataclass(frozen=True)
class Gradients:
    """Complete, reduced gradients and their norms as they are stored, loss scale included."""

    tensors: list[Tensor]
    positions: Sequence[int]
    """Where in the layout each tensor belongs; parameters without a gradient have none."""
    norms: Tensor
    total: float
    """The global 2-norm. Equal on every rank, so that every rank decides alike."""
    nonfinite: tuple[int, ...] = ()
    """Positions in the layout whose gradient holds NaN or infinity."""


def measure(layout: Layout) -> Gradients:
    """Collect and measure in one pass. Finite gradients are told from a norm that overflows."""
    tensors: list[Tensor] = []
    positions: list[int] = []
    for position, parameter in enumerate(layout.parameters):
        if (gradient := parameter.grad) is not None:
            tensors.append(gradient)
            positions.append(position)
    if not tensors:
        return Gradients([], (), torch.zeros(0), 0.0)
    norms = _norms(tensors, layout.uniform)
    total = float(torch.linalg.vector_norm(norms))
    if math.isfinite(total):
        return Gradients(tensors, positions, norms, total)
    broken = tuple(
        position for position, tensor in zip(positions, tensors, strict=True) if not all_finite(tensor)
    )
    if not broken:
        # Squares of finite values past 1e19 overflow float32; float64 holds them.
        norms = _norms([tensor.double() for tensor in tensors], layout.uniform)
        total = float(torch.linalg.vector_norm(norms))
    return Gradients(tensors, positions, norms, total, broken)


def _norms(tensors: list[Tensor], uniform: bool) -> Tensor:
    """One norm per tensor. Shards of one tensor (DTensor) are summed over their ranks."""
    if uniform:
        wide = torch.float32 if tensors[0].dtype in HALF_PRECISION else None
        return _whole(torch.stack(torch._foreach_norm(tensors, 2, wide)))
    device = tensors[0].device
    kinds: dict[object, list[int]] = {}
    for index, tensor in enumerate(tensors):
        kinds.setdefault((tensor.device, tensor.dtype, getattr(tensor, "device_mesh", None)), []).append(
            index
        )
    found = torch.zeros(len(tensors), dtype=torch.float64, device=device)
    for indices in kinds.values():
        norms = _norms([tensors[index] for index in indices], uniform=True)
        found[indices] = norms.to(device=device, dtype=torch.float64)
    return found


def _whole(tensor: Tensor) -> Tensor:
    """A DTensor's full value, on every rank; other tensors as they are."""
    full = getattr(tensor, "full_tensor", None)
    return tensor if full is None else full()


def all_finite(tensor: Tensor) -> bool:
    return bool(_whole(torch.isfinite(tensor).all().to(torch.uint8)))


def scale_(tensors: list[Tensor], factor: float | list[float]) -> None:
    """Multiply in place: by one number, or each tensor by its own. Factors of one cost nothing."""
    if isinstance(factor, list):
        if any(one != 1.0 for one in factor):
            torch._foreach_mul_(tensors, factor)
    elif factor != 1.0:
        torch._foreach_mul_(tensors, _quickest(factor, tensors))


def _quickest(factor: float, tensors: list[Tensor]) -> float | Tensor:
    """On a CPU torch multiplies by a tensor of one number of the same type thrice as fast as by a number."""
    first = tensors[0]
    if type(first) is not Tensor or not first.is_cpu or first.dtype in HALF_PRECISION:
        return factor
    alike = all(tensor.dtype is first.dtype for tensor in tensors)
    return torch.tensor(factor, dtype=first.dtype) if alike else factor


def bound_(tensors: list[Tensor], limit: float) -> None:
    torch._foreach_clamp_min_(tensors, -limit)
    torch._foreach_clamp_max_(tensors, limit)
