"""Reading numbers out of tensors where that cannot disturb."""

from __future__ import annotations

import torch
from torch.utils._python_dispatch import _get_current_dispatch_mode


def number(tensor: torch.Tensor) -> float | None:
    """The value of a one-element tensor; None where reading it would fail or be seen by others."""
    return float(tensor.detach()) if readable(tensor) else None


def readable(tensor: torch.Tensor) -> bool:
    """False for what stands for numbers without having any, and where nothing may be computed."""
    return (
        type(tensor) in (torch.Tensor, torch.nn.Parameter)
        and not torch._C._functorch.is_functorch_wrapped_tensor(tensor)
        and not tensor.is_meta
        and may_compute()
    )


def may_compute() -> bool:
    """False under tracing, CUDA graph capture and dispatch modes, which would see our operations."""
    return (
        _get_current_dispatch_mode() is None
        and not torch._C._is_tracing()
        and not (torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing())  # type: ignore[no-untyped-call]
    )
