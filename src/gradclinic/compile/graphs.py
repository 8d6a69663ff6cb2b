"""A traced call and its compiled form."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule

from gradclinic.compile.lifted import Lifted
from gradclinic.compile.lifting import filled, rebuilt, tensors
from gradclinic.compile.tracing import trace

Runner = Callable[..., Any]
Backend = str | Callable[..., Any]


@dataclass(frozen=True)
class Compiled:
    """One graph, compiled once, whoever's tensors it is given."""

    graph: GraphModule
    run: Runner
    outputs: Any
    """The build of what the graph returns, to be filled."""

    def __call__(self, lifted: Lifted, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        return filled(self.outputs, self.run(*lifted.state(), *lifted.inputs(args, kwargs)))


def record(
    lifted: Lifted, args: Sequence[Any], kwargs: Mapping[str, Any], symbolic: bool = False
) -> Compiled:
    """Trace the call; run as it is, operation by operation, until something compiles it."""
    outputs: list[Any] = []
    function = lifted.function(args, kwargs)

    def flat(*given: Tensor) -> list[Tensor]:
        made = function(*given)
        outputs.append(rebuilt(made, lambda tensor: torch.empty(0, device="meta")))
        return list(tensors(made).values())

    graph = trace(flat, [*lifted.state(), *lifted.inputs(args, kwargs)], symbolic=symbolic)
    return Compiled(graph, graph, outputs[-1])


def compiled_graph(graph: GraphModule, backend: Backend, dynamic: bool) -> Runner:
    """The graph through `torch.compile`; "none" leaves it as it is."""
    if backend == "none":
        return graph
    # Random numbers are drawn as eager draws them, or nothing could be compared.
    options: dict[str, Any] | None = None
    if backend == "inductor" and _is_random(graph):
        options = {"fallback_random": True}
    return torch.compile(graph, backend=backend, dynamic=dynamic, fullgraph=True, options=options)


def _is_random(graph: GraphModule) -> bool:
    seeded = torch.Tag.nondeterministic_seeded
    return any(seeded in getattr(node.target, "tags", ()) for node in graph.graph.nodes)
