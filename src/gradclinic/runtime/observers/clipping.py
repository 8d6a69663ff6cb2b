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

    def before_value(parameters: list[torch.Tensor], *args: Any, **kwargs: Any) -> None:
        if recorder.full:
            recorder.emit(EventKind.CLIP)
            return
        scene.catch_up()
        limit = limit_of(args, kwargs)
        recorder.emit(
            EventKind.CLIP,
            optimizers=scene.actors.holding(parameters),
            limit=limit,
            by_value=True,
            cosine=None if limit is None else bent(parameters, limit),
        )

    def after(*args: Any, **kwargs: Any) -> None:
        scene.settle(EventKind.CLIP)

    for name, noted in (("clip_grad_norm_", before), ("clip_grad_value_", before_value)):
        original = vars(clip_grad)[name]
        watched = observed(original, recorder, scope="clip", before=noted, after=after)
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


def bent(parameters: list[torch.Tensor], limit: float) -> float | None:
    """The cosine between the gradient and what is left of it when each value is limited."""
    product = before = after = 0.0
    with torch.no_grad():
        for parameter in parameters:
            if parameter.grad is None or parameter.grad.is_sparse:
                continue
            gradient = parameter.grad.detach().double().flatten()
            limited = gradient.clamp(-limit, limit)
            product += float(gradient @ limited)
            before += float(gradient @ gradient)
            after += float(limited @ limited)
    size = (before * after) ** 0.5
    return product / size if size > 0 and size < float("inf") else None


def limit_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> float | None:
    given = args[0] if args else kwargs.get("max_norm", kwargs.get("clip_value"))
    return float(given) if isinstance(given, int | float) else None
