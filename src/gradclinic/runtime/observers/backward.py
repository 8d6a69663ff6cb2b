"""backward(): whose gradients it fills, and how its loss was scaled."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import torch

from gradclinic.facts import EventKind
from gradclinic.runtime import graph
from gradclinic.runtime.precision import autocast_precision
from gradclinic.runtime.scene import Scene


def install(scene: Scene) -> None:
    """`Tensor.backward` ends in `torch.autograd.backward`, so this one function sees both."""
    recorder, actors = scene.recorder, scene.actors
    filled: list[frozenset[str]] = []

    def before(
        tensors: torch.Tensor | Sequence[torch.Tensor],
        grad_tensors: Any = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        grad_variables: Any = None,
        inputs: Any = None,
    ) -> None:
        filled.clear()
        if recorder.full:
            recorder.emit(EventKind.BACKWARD)
            return
        roots = [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)
        scene.catch_up()
        leaves = _given(inputs) if inputs is not None else graph.reached(roots)
        concerned = None if leaves is None else actors.holding(scene.replicas.held(leaves))
        _note_loose(scene, leaves or ())
        recorder.emit(
            EventKind.BACKWARD,
            optimizers=concerned,
            scaled=_scaled(scene, roots, grad_tensors),
            factor=graph.factor(roots[0].grad_fn) if len(roots) == 1 else None,
            in_step=bool(scene.steps_under_way),
            **_autocast(),
            **_scaler(scene, roots),
            **_reduction(scene, leaves),
        )
        filled.append(concerned or frozenset())

    def after(*args: Any, **kwargs: Any) -> None:
        concerned = filled.pop() if filled else frozenset()
        moved = scene.settle(EventKind.BACKWARD, concerned)
        if moved - concerned:
            # Checkpointed or otherwise hidden parts of the graph fill gradients the walk did not reach.
            recorder.widen(EventKind.BACKWARD, moved)

    scene.wrap(torch.autograd, "backward", scope="backward", before=before, after=after)


def _note_loose(scene: Scene, leaves: Collection[torch.Tensor]) -> None:
    unknown = [] if _is_distributed() else scene.register.unknown(leaves)
    if unknown:
        frame = next(scene.recorder.places.frames(), None)
        names = {id(thing): name for name, thing in (frame.f_globals if frame else {}).items()}
        for one in unknown:
            scene.register.note_loose(one, names.get(id(one), ""), scene.recorder.places.here())


def _is_distributed() -> bool:
    """Wrappers that shard a model hold its parameters in forms of their own."""
    return torch.distributed.is_available() and torch.distributed.is_initialized()


def _autocast() -> dict[str, Any]:
    return {"autocast": True} if autocast_precision() else {}


def _given(inputs: Any) -> list[torch.Tensor]:
    return [inputs] if isinstance(inputs, torch.Tensor) else list(inputs)


def _scaler(scene: Scene, roots: list[torch.Tensor]) -> dict[str, Any]:
    for root in roots:
        node = graph.below(root.grad_fn, scene.scaled_losses)
        if node is not None:
            return {"scaler": scene.scaled_losses[graph.key_of(node)]}
    return {}


def _reduction(scene: Scene, leaves: list[torch.Tensor] | None) -> dict[str, Any]:
    model = scene.replicas.reducing(leaves)
    return {} if model is None else {"reduces": model}


def _scaled(scene: Scene, roots: list[torch.Tensor], grad_tensors: Any) -> bool | None:
    if len(roots) != 1 or (grad_tensors is not None and not _all_none(grad_tensors)):
        return None
    node = roots[0].grad_fn
    if node is not None and graph.key_of(node) in scene.scaled_losses:
        node = node.next_functions[0][0]
    return graph.divided(node, scene.plain_means.keys())


def _all_none(grad_tensors: Any) -> bool:
    return not isinstance(grad_tensors, torch.Tensor) and all(one is None for one in grad_tensors)
