"""The gradient of each term of an objective, measured in a few early steps where that cannot disturb."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import torch
from torch.autograd.function import BackwardCFunction

from gradclinic.facts.flow import Conflict
from gradclinic.facts.location import Location
from gradclinic.facts.terms import LossTerm, LossTerms
from gradclinic.runtime.statistics.numerics import forward_order
from gradclinic.runtime.values import readable

_GRADIENT = torch.autograd.grad
"""As torch made it, without the wrappers of a recording."""
_MOST_NODES = 5_000
_MOST_NUMBERS = 20_000_000
_MOST_TERMS = 8


def take_apart(
    root: torch.Tensor, parameters: Mapping[str, torch.Tensor], backward: Location
) -> LossTerms | None:
    """None where there is one term only, or where backwards beside the user's own would be noticed."""
    # Imported late: a run whose objective is no sum does not need it.
    from gradclinic.probes._terms import split

    if not _may_go_back(root, parameters.values()):
        return None
    with torch._C.DisableTorchFunction():
        parts = split(root)
        if not 2 <= len(parts) <= _MOST_TERMS:
            return None
        weights = _GRADIENT(root, [part.edge for part in parts], retain_graph=True)
        tensors = list(parameters.values())
        gradients = [
            _GRADIENT(part.edge, tensors, weight, retain_graph=True, allow_unused=True)
            for part, weight in zip(parts, weights, strict=True)
        ]
        names = list(parameters)
        terms = [
            _term(part.name, part.where, dict(zip(names, found, strict=True)))
            for part, found in zip(parts, gradients, strict=True)
        ]
        return LossTerms(backward, tuple(terms), tuple(_cosines(terms, gradients)))


def _may_go_back(root: torch.Tensor, parameters: Any) -> bool:
    """Not where hooks would fire, functions of the user's would run, or other ranks would be asked."""
    numbers = sum(parameter.numel() for parameter in parameters)
    if root.grad_fn is None or root.numel() != 1 or not readable(root) or not 0 < numbers <= _MOST_NUMBERS:
        return False
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return False
    if any(parameter._backward_hooks or not readable(parameter) for parameter in parameters):
        return False
    nodes = forward_order(root.grad_fn, most=_MOST_NODES)
    return bool(nodes) and not any(isinstance(node, BackwardCFunction) for node in nodes)


def _term(name: str, where: Location | None, gradients: dict[str, torch.Tensor | None]) -> LossTerm:
    squares: dict[str, float] = {}
    for parameter, gradient in gradients.items():
        if gradient is not None:
            module = parameter.rpartition(".")[0] or parameter
            squares[module] = squares.get(module, 0.0) + float(gradient.norm()) ** 2
    norms = {module: math.sqrt(square) for module, square in squares.items()}
    return LossTerm(name, where, math.sqrt(sum(squares.values())), norms)


def _cosines(
    terms: Sequence[LossTerm], gradients: Sequence[Sequence[torch.Tensor | None]]
) -> Iterator[Conflict]:
    for (one, first), (other, second) in combinations(zip(terms, gradients, strict=True), 2):
        pairs = [
            (a, b) for a, b in zip(first, second, strict=True) if a is not None and b is not None
        ]
        sizes = one.norm * other.norm
        if pairs and sizes > 0 and math.isfinite(sizes):
            product = sum(float(torch.dot(a.flatten(), b.flatten())) for a, b in pairs)
            yield Conflict(one.name, other.name, product / sizes)
