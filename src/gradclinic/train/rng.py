"""Every random stream a training loop draws from: python, numpy, torch on all devices."""

from __future__ import annotations

import random
import sys
from typing import Any

import torch


def capture() -> dict[str, Any]:
    """Their state as plain values and tensors, so that it loads with `weights_only=True`."""
    state: dict[str, Any] = {"python": random.getstate(), "torch": torch.get_rng_state()}
    if (numpy := sys.modules.get("numpy")) is not None:
        kind, keys, position, has_gauss, cached = numpy.random.get_state()
        state["numpy"] = (kind, torch.from_numpy(keys.astype("int64")), position, has_gauss, cached)
    for name in ("cuda", "xpu"):
        device = getattr(torch, name)
        if device.is_available() and device.is_initialized():
            state[name] = device.get_rng_state_all()
    if torch.backends.mps.is_available():
        state["mps"] = torch.mps.get_rng_state()
    return state


def restore(state: dict[str, Any]) -> None:
    version, internal, gauss = state["python"]
    random.setstate((version, tuple(internal), gauss))
    torch.set_rng_state(state["torch"])
    if "numpy" in state:
        import numpy

        kind, keys, position, has_gauss, cached = state["numpy"]
        numpy.random.set_state((kind, keys.numpy().astype("uint32"), position, has_gauss, cached))
    for name in ("cuda", "xpu"):
        if name in state:
            getattr(torch, name).set_rng_state_all(state[name])
    if "mps" in state:
        torch.mps.set_rng_state(state["mps"])
