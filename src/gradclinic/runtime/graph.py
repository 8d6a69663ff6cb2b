"""Reading the autograd graph below a loss: which parameters it reaches, how the loss was scaled."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any

import torch

Node = Any
"""torch's graph nodes have no useful static type: their attributes depend on the operation."""

MOST_NODES = 200_000
_HANDS_ON = (
    "ToCopyBackward",
    "ViewBackward",
    "ReshapeAliasBackward",
    "SqueezeBackward",
    "AliasBackward",
    "CloneBackward",
)
_MEANS = ("MeanBackward", "NllLoss", "MseLoss", "SmoothL1Loss", "HuberLoss", "BinaryCrossEntropy", "CtcLoss")
_REDUCTION_MEAN = 1


def key_of(node: Node) -> tuple[str, int]:
    """Identifies a node while its graph lives, without keeping it alive."""
    return node.name(), node._sequence_nr()


def reached(roots: Iterable[torch.Tensor]) -> list[torch.Tensor] | None:
    """The leaves a backward from `roots` deposits gradients in; None if the graph is too large to walk."""
    leaves: dict[int, torch.Tensor] = {}
    todo: list[Node] = []
    for root in roots:
        if root.grad_fn is not None:
            todo.append(root.grad_fn)
        elif root.requires_grad:
            leaves[id(root)] = root
    seen: set[Node] = set(todo)
    while todo:
        node = todo.pop()
        variable = getattr(node, "variable", None)
        if variable is not None:
            leaves[id(variable)] = variable
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                todo.append(following)
        if len(seen) > MOST_NODES:
            return None
    return list(leaves.values())


def operations(roots: Iterable[torch.Tensor]) -> set[tuple[str, int]]:
    """The operations of a graph; the ends of it belong to every graph and do not count."""
    todo: list[Node] = [root.grad_fn for root in roots if root.grad_fn is not None]
    seen: set[Node] = set(todo)
    while todo and len(seen) < MOST_NODES:
        for following, _ in todo.pop().next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                todo.append(following)
    return {key_of(node) for node in seen if not hasattr(node, "variable")}


def divided(node: Node | None, means: Container[tuple[str, int]] = ()) -> bool | None:
    """True for a loss that was divided or weighted by a number, False for a plain mean, None if unsure.

    `means` are the nodes of losses that are known to be plain means, whatever they are made of.
    """
    node = _below_casts(node)
    if node is None:
        return None
    name = node.name()
    if key_of(node) in means:
        return False
    if name.startswith(("DivBackward", "MulBackward")):
        return True if any(following is None for following, _ in node.next_functions) else None
    if name.startswith("AddBackward"):
        parts = {divided(following, means) for following, _ in node.next_functions if following is not None}
        return parts.pop() if len(parts) == 1 else None
    if name.startswith("NegBackward"):
        return divided(node.next_functions[0][0], means)
    if name.startswith(_MEANS):
        return False if getattr(node, "_saved_reduction", _REDUCTION_MEAN) == _REDUCTION_MEAN else None
    return None


def factor(node: Node | None) -> float | None:
    """The number a loss was multiplied by on its way to backward; None if it cannot be told."""
    product = 1.0
    while (node := _below_casts(node)) is not None and node.name().startswith(("DivBackward", "MulBackward")):
        by = getattr(node, "_saved_other", None)  # a plain number where torch itself divides
        followers = [following for following, _ in node.next_functions if following is not None]
        if len(followers) != 1 or by is None or (isinstance(by, torch.Tensor) and by.numel() != 1) or not by:
            return None
        product = product * float(by) if node.name().startswith("Mul") else product / float(by)
        node = followers[0]
    return product


def below(node: Node | None, wanted: Container[tuple[str, int]], *, depth: int = 4) -> Node | None:
    """The node at or closely below `node` that is one of `wanted`, through casts, sums and factors."""
    level = [node] if node is not None else []
    for _ in range(depth):
        for candidate in level:
            if key_of(candidate) in wanted:
                return candidate
        level = [
            following
            for candidate in level
            if candidate.name().startswith(
                (*_HANDS_ON, "DivBackward", "MulBackward", "AddBackward", "SumBackward")
            )
            for following, _ in candidate.next_functions
            if following is not None
        ]
    return None


def _below_casts(node: Node | None) -> Node | None:
    while node is not None and node.name().startswith(_HANDS_ON) and node.next_functions:
        node = node.next_functions[0][0]
    return node
