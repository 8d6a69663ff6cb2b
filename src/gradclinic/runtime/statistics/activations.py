"""Activations, read off what the graph keeps for its backward: no hook on any module is needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from gradclinic.runtime.statistics import meter
from gradclinic.runtime.statistics.numerics import operation, saved

Node = Any
_MOST = 64
_FEWEST_ROWS = 8
_WEIGHTED = ("addmm", "mm", "bmm", "convolution", "linear", "baddbmm", "mkldnn_rnn", "mul")
_KINDS = ("relu", "sigmoid", "tanh")
_TAIL = {"sigmoid": (0.01, 0.99), "tanh": (-0.99, 0.99)}


@dataclass(frozen=True, slots=True)
class Measured:
    position: int
    """Of the node in the graph's forward order."""
    kind: str
    ordinal: int
    hidden: bool
    """Weights follow it: it is not what the loss is taken of."""
    units: int
    dead: float
    """The share of units that are zero for every sample of the batch."""
    pinned: float
    """The share of values in the flat tails."""
    size: float
    """Root mean square."""


def measure(nodes: Sequence[Node]) -> list[Measured]:
    last_weights = max((i for i, node in enumerate(nodes) if operation(node) in _WEIGHTED[:-1]), default=-1)
    chosen = [(i, node) for i, node in enumerate(nodes) if operation(node) in _KINDS]
    stride = max(1, -(-len(chosen) // _MOST))
    found = []
    for ordinal, (position, node) in enumerate(chosen):
        result = saved(node, "result") if ordinal % stride == 0 else None
        if result is None or result.dim() < 2 or not result.is_floating_point() or result.is_sparse:
            continue
        units = _unit_dim(node, result)
        if result.numel() // result.shape[units] < _FEWEST_ROWS:
            continue
        kind = operation(node)
        dead, pinned, size = meter.read(_numbers(kind, result, units))
        found.append(
            Measured(
                position, kind, ordinal, position < last_weights, result.shape[units], dead, pinned, size
            )
        )
    return found


def _numbers(kind: str, result: torch.Tensor, units: int) -> list[torch.Tensor]:
    others = [dim for dim in range(result.dim()) if dim != units]
    size = result.float().square().mean().sqrt()
    if kind == "relu":
        return [(result.amax(others) <= 0).float().mean(), torch.zeros_like(size), size]
    low, high = _TAIL[kind]
    return [torch.zeros_like(size), ((result < low) | (result > high)).float().mean(), size]


def _unit_dim(node: Node, result: torch.Tensor) -> int:
    """Channels of a picture or of a one-dimensional convolution, features of anything else."""
    below = [following for following, _ in node.next_functions if following is not None]
    conv = any("Conv" in one.name() or "BatchNorm" in one.name() for one in below)
    return 1 if result.dim() == 4 or (conv and result.dim() >= 3) else result.dim() - 1
