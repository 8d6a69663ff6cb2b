"""Gradient clipping."""

from __future__ import annotations

from collections.abc import Iterable
from functools import wraps
from typing import Any

import torch
from torch.nn.utils import clip_grad

from gradclinic.facts import EventKind
from gradclinic.runtime.patching import observed, unseen
from gradclinic.runtime.scene import Scene


def install(scene: Scene) -> None:
    recorder = scene.recorder

    def before(parameters: list[torch.Tensor], *args: Any, **kwargs: Any) -> None:
        if recorder.full:
            recorder.emit(EventKind.CLIP)
            return
        scene.catch_up()
        recorder.emit(
            EventKind.CLIP, optimizers=scene.actors.holding(parameters), limit=limit_of(args, kwargs)
        )

    def after(*args: Any, **kwargs: Any) -> None:
        scene.settle(EventKind.CLIP)

    for name in ("clip_grad_norm_", "clip_grad_value_"):
        original = vars(clip_grad)[name]
        watched = observed(original, recorder, scope="clip", before=before, after=after)
        clip = reading_once(original, watched)
        for module in (clip_grad, torch.nn.utils):
            scene.patches.replace(module, name, clip)


def reading_once(original: Any, watched: Any) -> Any:
    """`parameters` is often a generator, which can be read only once: hand on what was read."""

    @wraps(original)
    def clip(parameters: torch.Tensor | Iterable[torch.Tensor], *args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_compiling():
            return original(parameters, *args, **kwargs)
        if isinstance(parameters, torch.Tensor):
            return watched([parameters], *args, **kwargs)
        read = list(parameters)
        if not read:
            return original(iter(()), *args, **kwargs)
        return watched(read, *args, **kwargs)

    return unseen(clip)


def limit_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> float | None:
    given = args[0] if args else kwargs.get("max_norm", kwargs.get("clip_value"))
    return float(given) if isinstance(given, int | float) else None
