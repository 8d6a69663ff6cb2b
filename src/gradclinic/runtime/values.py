"""Reading numbers out of tensors where that cannot disturb."""

from __future__ import annotations

import torch
from torch.utils._python_dispatch import _get_current_dispatch_mode


def number(tensor: torch.Tensor) -> float | None:
    """The value of a one-element tensor; None where reading it would fail or be seen by others."""
    if not readable(tensor):
        return None
    return float(tensor.detach())


def readable(tensor: torch.Tensor) -> bool:
    """False under tracing, function transforms, CUDA graph capture and the user's dispatch modes."""
    return (
        type(tensor) in (torch.Tensor, torch.nn.Parameter)
        and not torch._C._functorch.is_functorch_wrapped_tensor(tensor)
        and not tensor.is_meta
        and _get_current_dispatch_mode() is None
        and not torch._C._is_tracing()
        and not (tensor.is_cuda and torch.cuda.is_current_stream_capturing())
    )
