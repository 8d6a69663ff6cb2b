"""What may be given to a step as its loss."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import BackwardCFunction

from gradclinic.train.errors import TrainStepError
from gradclinic.train.layout import HALF_PRECISION

MOST_NODES_WALKED = 20_000


def objective_of(given: object, term_weights: Mapping[str, float]) -> tuple[Tensor, dict[str, Tensor]]:
    """The scalar to differentiate, and its weighted terms when they were given by name."""
    if isinstance(given, Mapping):
        terms = {name: _checked(term, f"loss term {name!r}") for name, term in given.items()}
        if not terms:
            raise TrainStepError("step({}): expected at least one named loss term")
        if term_weights and (unknown := sorted(set(terms) - set(term_weights))):
            raise TrainStepError(
                f"step() was given the loss term {unknown[0]!r}, but terms= names "
                f"{', '.join(map(repr, term_weights))}; add it there or rename it"
            )
        weighted = {name: _times(term, term_weights.get(name, 1.0)) for name, term in terms.items()}
        return sum(list(weighted.values())[1:], next(iter(weighted.values()))), weighted
    if term_weights:
        raise TrainStepError(
            f"step() was given one loss, but terms= names {', '.join(map(repr, term_weights))}; "
            "give the terms by name: step({name: loss, …})"
        )
    if isinstance(given, list | tuple):
        raise TrainStepError(
            f"step() was given {len(given)} losses in a {type(given).__name__}, and expects one; add "
            "them up, or name them to keep them apart: step({'recon': loss_a, 'kl': loss_b})"
        )
    return _checked(given, "loss"), {}


def _times(term: Tensor, weight: float) -> Tensor:
    return term if weight == 1.0 else term * weight


def _checked(loss: object, what: str) -> Tensor:
    if not isinstance(loss, Tensor):
        raise TrainStepError(
            f"step() was given a {type(loss).__name__} as {what}; expected the tensor the loss function "
            "returned, before .item() or float()"
        )
    if loss.numel() != 1:
        raise TrainStepError(
            f"step() was given a {what} of shape {tuple(loss.shape)}; expected one number: reduce it with "
            ".mean(), or with .sum() and step(loss, weight=n, reduction='sum')"
        )
    if not loss.requires_grad:
        raise TrainStepError(
            f"step() was given a {what} without a graph, so nothing would learn; compute it outside "
            "torch.no_grad() and without .detach(), .item() or NumPy on the way"
        )
    return loss.reshape(()) if loss.dim() else loss


def reaches(loss: Tensor, parameters: frozenset[int]) -> bool:
    """Whether the loss depends on one of these parameters, by id. True when that cannot be told.

    The walk starts at the output, where the last layer's weights are a few nodes away, so on a
    sound loss it ends at once.
    """
    todo: list[Any] = [loss.grad_fn]
    seen: set[Any] = set()
    while todo:
        node = todo.pop()
        if node is None or node in seen:
            continue
        if len(seen) > MOST_NODES_WALKED or isinstance(node, BackwardCFunction):
            # A Python autograd function (reentrant checkpointing) may run another graph inside.
            return True
        seen.add(node)
        variable = getattr(node, "variable", None)
        if variable is not None and id(variable) in parameters:
            return True
        todo.extend(follower for follower, _ in node.next_functions)
    return loss.is_leaf and id(loss) in parameters


def scaled(loss: Tensor, factor: float) -> Tensor:
    """What to call backward on. Half-precision losses are widened: a loss scale does not fit float16."""
    if factor == 1.0:
        return loss
    if factor == 0.0:
        # The mean over no elements is NaN, and NaN times zero would not be zero.
        return torch.nan_to_num(loss) * 0.0
    return (loss.float() if loss.dtype in HALF_PRECISION else loss) * factor


def gradient_norms(terms: Mapping[str, Tensor], parameters: Sequence[Tensor]) -> dict[str, float]:
    """The norm of each term's own gradient, without touching `.grad`. One extra backward per term."""
    trained = [parameter for parameter in parameters if parameter.requires_grad]
    norms = {}
    for name, term in terms.items():
        found = torch.autograd.grad(term, trained, retain_graph=True, allow_unused=True)
        norms[name] = math.sqrt(sum(float(one.norm()) ** 2 for one in found if one is not None))
    return norms
