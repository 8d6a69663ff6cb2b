"""What a traced graph is, as one short string: equal keys compute the same function of their inputs."""

from __future__ import annotations

import hashlib
from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule, Node
from torch.fx.node import map_arg


def graph_key(graph: GraphModule) -> str:
    """Operations, sizes, dtypes and baked constants by value; not the names, nor the inputs' values."""
    index = {node: f"%{i}" for i, node in enumerate(graph.graph.nodes)}
    digest = hashlib.sha256()
    for node in graph.graph.nodes:
        digest.update(repr(_line(graph, node, index)).encode())
    return digest.hexdigest()


def _line(graph: GraphModule, node: Node, index: dict[Node, str]) -> tuple[object, ...]:
    if node.op == "get_attr":
        return (node.op, _by_value(_attribute(graph, str(node.target))), _kind(node))
    target = "" if node.op == "placeholder" else str(node.target)
    # Constants keep their type: 1, 1.0 and True give different graphs.
    given = map_arg((node.args, node.kwargs), lambda other: _Name(index[other]))
    return (node.op, target, given, _kind(node))


class _Name(str):
    """Stands for an earlier node; printed without quotes, so no string argument can be taken for it."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _kind(node: Node) -> object:
    value = node.meta.get("val", node.meta.get("tensor_meta"))
    if isinstance(value, Tensor):
        build = (value.shape, value.stride(), value.dtype, value.device, value.requires_grad)
        return tuple(map(str, build))
    return str(value)


def _attribute(graph: GraphModule, path: str) -> Any:
    value: Any = graph
    for part in path.split("."):
        value = getattr(value, part)
    return value


def _by_value(constant: Any) -> object:
    if not isinstance(constant, Tensor):
        return repr(constant)
    dense = constant.detach().cpu().contiguous()
    content = hashlib.sha256(bytes(dense.reshape(-1).view(torch.uint8).numpy())).hexdigest()
    return (content, str(constant.dtype), tuple(constant.shape), str(constant.device))
