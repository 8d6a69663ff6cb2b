"""The precision that autocast gives to what runs now."""

from __future__ import annotations

import torch

_DEVICES = ("cuda", "cpu")


def autocast_precision() -> str:
    """`bfloat16` or `float16` inside an autocast block, nothing outside."""
    for device in _DEVICES:
        if torch.is_autocast_enabled(device):
            return str(torch.get_autocast_dtype(device)).removeprefix("torch.")
    return ""
