"""The potential compiled by hand, and the ways in which that has gone wrong.

`compile_potential` does what a trainer does: record the lower part with `make_fx`, reconnect the
tensors that autograd saved, compile, and fold the ghosts back. Each name in `FAULTS` leaves one
thing out or does it wrong. `gradclinic.verified_compile` does all of it in one line, and proves it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.fx import GraphModule
from torch.fx.experimental.proxy_tensor import make_fx

from model import Potential, fold
from periodic import Frame

TASK_TENSORS = ("descriptor.mean", "descriptor.std", "fitting.bias", "fitting.case")
"""What each task has of its own: inputs of the graph, so that tasks can share it."""

FAULTS = {
    "detach-kept": "the saved tensors stay detached in the recorded graph",
    "create-graph-off": "the model is in eval mode while it is recorded",
    "ghost-slice": "ghost rows are cut off where they should be summed back",
    "normalisation-off": "the virial is given per atom",
    "another-tasks-constant": "the graph of a task with another cut-off is reused",
    "buffer-not-promoted": "the energy bias is baked into a graph that tasks share",
    "backend-errs": "the graph is compiled by a backend that forgets gradients",
    "entry-without-grad": "the coordinates enter without requires_grad",
}


def compile_potential(
    model: Potential,
    frame: Frame,
    fault: str = "",
    *,
    traced: Potential | None = None,
    backend: str | Callable[..., Any] = "aot_eager",
) -> Callable[[Frame], dict[str, Tensor]]:
    """The model as a compiled function of a frame; `traced` is the task whose graph is shared."""
    tensors = [name for name in TASK_TENSORS if (fault, name) != ("buffer-not-promoted", "fitting.bias")]
    graph = record(traced or model, frame, tensors, fault)
    if fault != "detach-kept":
        reconnect_saved_tensors(graph)
    compiled = torch.compile(graph, backend=careless if fault == "backend-errs" else backend)

    def forward(frame: Frame) -> dict[str, Tensor]:
        own = [model.get_buffer(name) for name in tensors]
        made = compiled(frame.coord, frame.types, frame.neighbours, *own)
        if fault == "ghost-slice":
            return made | {"force": made["force"][: frame.neighbours.shape[0]]}
        folded = fold(made, frame)
        if fault == "normalisation-off":
            return folded | {"virial": folded["virial"] / frame.neighbours.shape[0]}
        return folded

    return forward


def record(model: Potential, frame: Frame, tensors: list[str], fault: str = "") -> GraphModule:
    """The operations of `model.lower`, its own gradient included, with `tensors` as inputs."""
    lower = _Lower(model)

    def function(coord: Tensor, types: Tensor, neighbours: Tensor, *given: Tensor) -> dict[str, Tensor]:
        if fault != "entry-without-grad":
            coord = coord.detach().requires_grad_(True)
        named = {f"model.{name}": tensor for name, tensor in zip(tensors, given, strict=True)}
        return functional_call(lower, named, (coord, types, neighbours))

    was_training = model.training
    model.train(fault != "create-graph-off")
    try:
        own = [model.get_buffer(name) for name in tensors]
        return make_fx(function)(frame.coord, frame.types, frame.neighbours, *own)
    finally:
        model.train(was_training)


def reconnect_saved_tensors(graph: GraphModule) -> None:
    """Autograd detaches a tensor when it saves it and when it takes it back: always a pair."""
    detach = torch.ops.aten.detach.default
    for node in reversed(graph.graph.nodes):
        source = node.args[0] if node.target is detach else None
        if source is not None and source.target is detach:
            node.replace_all_uses_with(source.args[0])
            graph.graph.erase_node(node)
    graph.graph.eliminate_dead_code()
    graph.recompile()


def careless(graph: GraphModule, _inputs: list[Tensor]) -> Callable[..., Any]:
    """A backend that runs everything without gradients."""

    def run(*args: Tensor) -> Any:
        with torch.no_grad():
            return graph(*args)

    return run


class _Lower(nn.Module):
    def __init__(self, model: Potential) -> None:
        super().__init__()
        self.model = model

    def forward(self, *args: Tensor) -> dict[str, Tensor]:
        return self.model.lower(*args)
