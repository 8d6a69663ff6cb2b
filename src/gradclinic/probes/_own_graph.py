"""The case's own forward as a graph: what eager does, operation by operation, with the lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule, Interpreter, Node

from gradclinic.case import Case
from gradclinic.compile.graphs import record
from gradclinic.compile.lifted import Lifted
from gradclinic.compile.lifting import tensors
from gradclinic.compile.tracing import LINE
from gradclinic.facts import Location
from gradclinic.facts.variants import Trial, TrialKind
from gradclinic.probes._restore import undisturbed
from gradclinic.probes._where import shown_path

_SCATTER = {
    torch.ops.aten.index_add.default: (1, 3),
    torch.ops.aten.scatter_add.default: (1, 3),
    torch.ops.aten.scatter_reduce.two: (1, 3),
    torch.ops.aten.index_add_.default: (1, 3),
    torch.ops.aten.scatter_add_.default: (1, 3),
}
"""Operations that sum rows into fewer, with the positions of their dimension and their source."""


@dataclass(frozen=True)
class OwnGraph:
    graph: GraphModule
    inputs: list[Tensor]
    names: list[str]
    """Of the tensors it returns."""


def own_graph(case: Case) -> OwnGraph | None:
    """None when the model cannot be traced as a whole."""
    model = case.model

    def forward(batch: Any) -> Any:
        return case.outputs(model, batch)

    lifted = Lifted(forward)
    try:
        with undisturbed(case):
            recorded = record(lifted, (case.batch,), {})
    except Exception:  # whatever tracing raises: this is an extra, and the probe goes on without it
        return None
    names = list(tensors(recorded.outputs))
    return OwnGraph(recorded.graph, [*lifted.state(), *lifted.inputs((case.batch,), {})], names)


def line_of(node: Node) -> Location | None:
    """The user's line that an operation comes from."""
    made = node.meta.get(LINE)
    return None if made is None else Location(shown_path(made[0]), made[1], function=made[2])


def sliced_scatter(own: OwnGraph, name: str, value: Tensor, tolerance: float) -> Trial | None:
    """The scatter-sum which, replaced by a slice of its rows, gives `value` for output `name`."""
    for node in own.graph.graph.nodes:
        if node.target not in _SCATTER:
            continue
        sliced = _Sliced(own.graph, node)
        made = dict(zip(own.names, sliced.run(*own.inputs), strict=True))[name].detach()
        if sliced.dropped and made.shape == value.shape:
            apart = float((made - value).double().norm())
            if apart <= tolerance * float(value.double().norm()):
                detail = f"{sliced.kept} of {sliced.kept + sliced.dropped} rows are kept"
                what = f"{node.target.name().partition('::')[2]} of {name}"
                return Trial(TrialKind.SLICE, what, True, detail, where=line_of(node))
    return None


class _Sliced(Interpreter):
    """Runs the graph with one scatter-sum replaced by the first rows of what it sums."""

    def __init__(self, graph: GraphModule, chosen: Node) -> None:
        super().__init__(graph)
        self.chosen = chosen
        self.kept = self.dropped = 0

    def run_node(self, n: Node) -> Any:
        if n is not self.chosen:
            return super().run_node(n)
        args, _ = self.fetch_args_kwargs_from_env(n)
        at_dim, at_source = _SCATTER[n.target]  # type: ignore[index]
        base, dim, source = args[0], int(args[at_dim]), args[at_source]
        self.kept = base.shape[dim]
        self.dropped = source.shape[dim] - self.kept
        if self.dropped <= 0:
            return super().run_node(n)
        return base + source.narrow(dim, 0, self.kept)
