"""Autocast around forward and loss, and around nothing else."""

from __future__ import annotations

from typing import Literal

import torch

from gradclinic.train.errors import TrainStepError

Name = Literal["fp32", "bf16", "fp16"]
_DTYPES = {"fp32": None, "bf16": torch.bfloat16, "fp16": torch.float16}


class Precision:
    """On from the moment a batch is handed out until its loss is given back."""

    def __init__(self, name: Name, device: torch.device) -> None:
        if name not in _DTYPES:
            raise TrainStepError(f"TrainStep(precision={name!r}): expected {', '.join(map(repr, _DTYPES))}")
        self.name = name
        self._dtype = _DTYPES[name]
        self._device_type = device.type
        self._active: torch.autocast | None = None

    def enter(self) -> None:
        if self._dtype is not None and self._active is None:
            self._active = torch.autocast(self._device_type, dtype=self._dtype)
            self._active.__enter__()  # type: ignore[no-untyped-call]

    def leave(self) -> None:
        if self._active is not None:
            self._active.__exit__(None, None, None)
            self._active = None
