"""Resident memory of the process, every few steps."""

from __future__ import annotations

import os
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from gradclinic.facts.memory import MemoryGrowth
from gradclinic.runtime.scene import Scene

_FROM = 20
"""Steps after which allocators have their usual size."""
_MOST = 64
_STATUS = "/proc/self/statm"


def install(scene: Scene) -> None:
    if not os.path.exists(_STATUS):
        scene.gaps["memory"] = "this system does not tell it"
        return
    page = os.sysconf("SC_PAGE_SIZE") / 2**20
    looks: list[tuple[int, float]] = []
    every = 5

    def look(step: int) -> None:
        nonlocal every
        with open(_STATUS) as status:
            looks.append((step, int(status.read().split()[1]) * page))
        if len(looks) >= _MOST:
            del looks[1::2]
            every *= 2

    def stepped(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        step = scene.recorder.steps
        if step >= _FROM and step % every == 0 and not torch.compiler.is_compiling():
            scene.recorder.safely(look, step)

    def tell() -> list[object]:
        return [MemoryGrowth(*map(tuple, zip(*looks, strict=True)))] if looks else []

    scene.patches.on_undo(register_optimizer_step_post_hook(stepped).remove)
    scene.facts.append(tell)
