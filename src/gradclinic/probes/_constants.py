"""What a traced graph holds by value: tensors and numbers that may be those of another model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule, Node
from torch.nn import Module

from gradclinic.facts import Location
from gradclinic.probes._own_graph import OwnGraph, line_of


@dataclass
class OwnConstants:
    """Puts the model's own constants into a graph in place of another's, and notes each."""

    model: Module
    own: OwnGraph | None
    replaced: list[str] = field(default_factory=list)
    where: Location | None = None

    def __call__(self, graph: GraphModule, reached: list[Module]) -> None:
        self._tensors(graph, reached)
        if self.own is not None:
            self._numbers(graph, self.own.graph)
        graph.recompile()

    def _tensors(self, graph: GraphModule, reached: list[Module]) -> None:
        mine = dict(_state(self.model))
        for node in graph.graph.nodes:
            if node.op != "get_attr":
                continue
            baked = getattr(graph, str(node.target), None)
            name = _name_of(baked, reached, mine) if isinstance(baked, Tensor) else None
            if name is None or mine[name] is baked or _equal(mine[name], baked):
                continue
            setattr(graph, str(node.target), mine[name])
            self.replaced.append(f"the tensor {name}")

    def _numbers(self, graph: GraphModule, own: GraphModule) -> None:
        """Operations of one line, in order, should hold the same numbers in both graphs."""
        mine = _by_line(own)
        for key, nodes in _by_line(graph).items():
            ours = mine.get(key, [])
            if len(ours) != len(nodes):
                continue
            for node, right in zip(nodes, ours, strict=True):
                self._number(node, right)

    def _number(self, node: Node, right: Node) -> None:
        for position, (value, wanted) in enumerate(zip(node.args, right.args, strict=False)):
            if isinstance(value, float) and isinstance(wanted, float) and value != wanted:
                node.update_arg(position, wanted)
                self.where = self.where or line_of(node)
                said = f"{value:g} where this model has {wanted:g}"
                if said not in self.replaced:
                    self.replaced.append(said)


def _by_line(graph: GraphModule) -> dict[tuple[object, ...], list[Node]]:
    """Nodes that hold numbers, by operation and source line."""
    found: defaultdict[tuple[object, ...], list[Node]] = defaultdict(list)
    for node in graph.graph.nodes:
        if node.op == "call_function" and any(isinstance(arg, float) for arg in node.args):
            where = line_of(node)
            if where is not None:
                found[str(node.target), where.path, where.line].append(node)
    return found


def _name_of(baked: Tensor, reached: list[Module], mine: dict[str, Tensor]) -> str | None:
    """What the model calls a constant that one of the traced function's modules holds."""
    for module in reached:
        for path, tensor in _state(module):
            if tensor is baked or (tensor.shape == baked.shape and tensor.data_ptr() == baked.data_ptr()):
                return next(
                    (
                        name
                        for name, own in mine.items()
                        if own.shape == baked.shape and (path == name or path.endswith(f".{name}"))
                    ),
                    None,
                )
    return None


def _state(module: Module) -> Iterator[tuple[str, Tensor]]:
    yield from module.named_parameters(remove_duplicate=False)
    yield from module.named_buffers(remove_duplicate=False)


def _equal(a: Any, b: Any) -> bool:
    return bool(a.dtype == b.dtype and torch.equal(a.detach(), b.detach()))
