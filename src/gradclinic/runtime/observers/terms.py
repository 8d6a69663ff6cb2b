"""Objectives that are sums: what each term asks of the parameters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from gradclinic.facts.location import Location
from gradclinic.facts.terms import LossTerms
from gradclinic.runtime.actors import parameters_of
from gradclinic.runtime.scene import Scene
from gradclinic.runtime.statistics.naming import named
from gradclinic.runtime.terms import take_apart

_LOOK_AT = 2
"""The backward of a place that is looked at: the lines of the graph are known then, and the first update,
of weights that may have been made to start at zero, is over."""
_MOST_PLACES = 8


def install(scene: Scene) -> None:
    backwards: dict[Location, int] = {}
    found: dict[Location, LossTerms] = {}
    disturbed = False

    def noticed(*args: Any, **kwargs: Any) -> None:
        """Hooks on tensors and packed tensors see every backward, ours too."""
        nonlocal disturbed
        disturbed = True

    def before(tensors: Any, grad_tensors: Any = None, *args: Any, **kwargs: Any) -> None:
        root = tensors if isinstance(tensors, torch.Tensor) else None
        if root is None or grad_tensors is not None or kwargs.get("inputs") is not None or disturbed:
            return
        if not torch.is_anomaly_enabled() or torch.is_anomaly_check_nan_enabled():
            return
        here = scene.recorder.places.here()
        backwards[here] = backwards.get(here, 0) + 1
        if backwards[here] != _LOOK_AT or len(found) >= _MOST_PLACES:
            return
        terms = take_apart(root, _trained(scene), here)
        if terms is not None:
            found[here] = terms

    def tell() -> Iterable[LossTerms]:
        return found.values()

    scene.wrap(torch.Tensor, "register_hook", scope="tensor hook", before=noticed)
    scene.wrap(torch.autograd.graph.saved_tensors_hooks, "__enter__", scope="packing", before=noticed)
    scene.wrap(torch.autograd, "backward", scope="terms", before=before)
    scene.facts.append(tell)


def _trained(scene: Scene) -> dict[str, torch.Tensor]:
    tensors = [p for _, optimizer in scene.actors.optimizers() for p in parameters_of(optimizer)]
    trained = [p for p in {id(p): p for p in tensors}.values() if p.requires_grad]
    return {info.name: p for info, p in zip(named(trained, scene.actors), trained, strict=True)}
