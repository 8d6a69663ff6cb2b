"""Arithmetic on many tensors at once, and a single transfer of the results."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

Tensors = list[torch.Tensor]


def is_plain(tensor: torch.Tensor) -> bool:
    return type(tensor) is torch.Tensor and tensor.layout is torch.strided


def local(tensor: torch.Tensor) -> torch.Tensor:
    """The part of a tensor that lies on this rank, as plain numbers."""
    if type(tensor) is torch.Tensor or type(tensor) is torch.nn.Parameter:
        plain = tensor
    else:
        to_local = getattr(tensor, "to_local", None)
        plain = to_local() if to_local is not None else tensor
    # Rows that were looked up twice lie twice in a sparse gradient, until it is coalesced.
    return plain.coalesce().values() if plain.is_sparse else plain


def of_whole(norms: Sequence[float], tensors: Tensors) -> list[float]:
    """Norms of sharded tensors from those of the parts on this rank.

    An estimate, from how much of each lies here: asking the other ranks is not ours to do.
    """
    return [norm * _share(tensor) for norm, tensor in zip(norms, tensors, strict=True)]


def _share(tensor: torch.Tensor) -> float:
    here = 0 if tensor.is_sparse else local(tensor).numel()
    return math.sqrt(tensor.numel() / here) if here else 1.0


def norms(tensors: Tensors) -> list[torch.Tensor]:
    """2-norms, one each, not transferred yet; half precision is summed in single."""
    if not tensors:
        return []
    try:
        first = tensors[0].dtype
        if first in (torch.float32, torch.float64):
            return list(torch._foreach_norm(tensors))
        return list(torch._foreach_norm(tensors, 2, dtype=torch.float32))
    except (RuntimeError, TypeError):
        return [torch.linalg.vector_norm(tensor, dtype=_wide(tensor.dtype)) for tensor in tensors]


def _wide(dtype: torch.dtype) -> torch.dtype:
    if dtype.is_complex:
        return torch.complex128 if dtype is torch.complex128 else torch.complex64
    return torch.float64 if dtype is torch.float64 else torch.float32


def read(scalars: Sequence[torch.Tensor]) -> list[float]:
    """Many one-element tensors as numbers, by one transfer where they lie together on a device."""
    if not scalars:
        return []
    if scalars[0].is_cpu:
        # Nothing to transfer, and asking each is half the work of putting them together.
        return [scalar.item() for scalar in scalars]
    try:
        values: list[float] = torch.stack(list(scalars)).tolist()
    except RuntimeError:
        return [float(scalar) for scalar in scalars]
    return values


def total(values: Sequence[float]) -> float:
    """The norm of the whole from the norms of its parts; a NaN is never lost behind an infinity."""
    whole = math.hypot(*values)
    return math.nan if whole == math.inf and any(map(math.isnan, values)) else whole


def extremes(tensor: torch.Tensor) -> tuple[float, float]:
    """Smallest and largest value; (nan, nan) if any is NaN."""
    if tensor.numel() == 0:
        return 0.0, 0.0
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor)
    low, high = torch.aminmax(tensor)
    return float(low), float(high)


def is_finite(tensor: torch.Tensor) -> bool:
    """The 2-norm of large finite values overflows, their extremes do not."""
    return all(map(math.isfinite, extremes(tensor)))
