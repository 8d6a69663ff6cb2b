"""Losses of torch.nn.functional, which the loss modules call too."""

from __future__ import annotations

import inspect
import math
from itertools import zip_longest
from typing import Any

import torch
from torch.nn import functional

from gradclinic.facts import EventKind
from gradclinic.runtime import graph
from gradclinic.runtime.scene import Scene, remember_recent
from gradclinic.runtime.values import number

_CLASS_TARGETS = ("cross_entropy", "nll_loss")
_ELEMENTWISE = (
    "mse_loss",
    "l1_loss",
    "smooth_l1_loss",
    "huber_loss",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "poisson_nll_loss",
    "gaussian_nll_loss",
    "soft_margin_loss",
)
_OTHERS = (
    "kl_div",
    "ctc_loss",
    "hinge_embedding_loss",
    "margin_ranking_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "cosine_embedding_loss",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
)


def install(scene: Scene) -> None:
    for name in (*_CLASS_TARGETS, *_ELEMENTWISE, *_OTHERS):
        _watch(scene, name)


def _watch(scene: Scene, name: str) -> None:
    signature = inspect.signature(vars(functional)[name])

    def after(result: Any, *args: Any, **kwargs: Any) -> None:
        if scene.recorder.full or not isinstance(result, torch.Tensor):
            return
        given = signature.bind(*args, **kwargs)
        given.apply_defaults()
        reduction = given.arguments["reduction"]
        if reduction == "mean" and result.grad_fn is not None:
            remember_recent(scene.plain_means, graph.key_of(result.grad_fn), None)
        scene.recorder.emit(
            EventKind.LOSS,
            reduction=reduction,
            valid=_averaged_over(name, given.arguments),
            value=number(result) if result.dim() == 0 else None,
            function=name,
        )

    scene.wrap(functional, name, scope="loss", after=after)


def _averaged_over(name: str, given: dict[str, Any]) -> int | None:
    """The number of elements a mean of this loss divides by."""
    input, target = given.get("input"), given.get("target")
    if not isinstance(input, torch.Tensor) or not isinstance(target, torch.Tensor):
        return None
    if given.get("weight") is not None:
        return None
    if name in _ELEMENTWISE:
        return math.prod(map(max, zip_longest(input.shape[::-1], target.shape[::-1], fillvalue=1)))
    if name in _CLASS_TARGETS and not target.is_floating_point():
        counted = number((target != given["ignore_index"]).sum())
        return None if counted is None else int(counted)
    return None
