"""Do several micro-batches give the gradient of one big batch?

Splits the batch into parts and compares the gradient of the whole with what accumulation makes of
the parts: each part's loss divided by their number, or a loop of your own given as `window`. The
weights that would be right are worked out from the gradients alone, so masks and padding are
accounted for whichever way the loss handles them.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module

from gradclinic.case import Case
from gradclinic.errors import UsageError
from gradclinic.facts.samples import TOLERANCE, Accumulation
from gradclinic.probes._budget import Budget
from gradclinic.probes._restore import random_state, undisturbed
from gradclinic.probes._trainee import quiet_dropout, set_gradients
from gradclinic.probes._tree import rows, sample_count
from gradclinic.probes._where import function_line
from gradclinic.probes.batch import freeze_batch_norm
from gradclinic.probes.outcome import Outcome
from gradclinic.target import find_target

FACTS = (Accumulation,)
"""What this experiment finds out."""

Window = Callable[[Module, Sequence[Any]], object]
"""The user's loop over one window: `window(model, micro_batches)` leaves its sum in `.grad`."""


def accumulation(case: Case, parts: int = 4, window: Window | None = None, dim: int = 0) -> Accumulation:
    count = sample_count(case.batch, dim)
    parts = min(parts, count)
    if parts < 2:
        raise UsageError("accumulation needs a batch of at least two samples")
    size = count // parts
    pieces = [rows(case.batch, torch.arange(at, at + size), dim) for at in range(0, size * parts, size)]
    with undisturbed(case), random_state() as rewind:
        quiet_dropout(case.model)
        norms = freeze_batch_norm(case)

        def gradient_of(batch: Any) -> Tensor:
            rewind()
            set_gradients(case.evaluate(batch=batch).total, list(case.parameters().values()))
            return _gradient(case)

        whole = gradient_of(rows(case.batch, torch.arange(size * parts), dim))
        each = torch.stack([gradient_of(piece) for piece in pieces])
        theirs = None
        if window is not None:
            rewind()
            case.model.zero_grad(set_to_none=True)
            window(case.model, pieces)
            theirs = _gradient(case)
    weights, residual = _weights(each, whole)
    if theirs is None:
        # A summed loss needs no division: that is how its user would accumulate it.
        used = [1.0] * parts if _same(each.sum(0), whole) else [1.0 / parts] * parts
        theirs = torch.tensor(used, dtype=torch.float64) @ each
    else:
        used, _ = _weights(each, theirs)
    return Accumulation(
        parts=parts,
        weights=tuple(weights),
        used=tuple(used),
        bias=_error(theirs, whole),
        cosine=_cosine(theirs, whole),
        residual=residual,
        own_loop=window is not None,
        batch_norm=norms,
        where=function_line(window or case.loss),
    )


def _gradient(case: Case) -> Tensor:
    parts = [
        (torch.zeros_like(p) if p.grad is None else p.grad.to_dense()).detach().double().cpu().flatten()
        for p in case.parameters().values()
    ]
    return torch.cat(parts)


def _weights(each: Tensor, whole: Tensor) -> tuple[list[float], float]:
    """The combination of the parts that comes nearest to the whole, and what it leaves unexplained."""
    count = len(each)
    # Parts with nearly parallel gradients have many solutions; prefer the plain ones where they hold.
    for plain in (1.0 / count, 1.0):
        if _same(each.sum(0) * plain, whole):
            return [plain] * count, _error(each.sum(0) * plain, whole)
    solution = torch.linalg.lstsq(each.T, whole.unsqueeze(1), driver="gelsd").solution.squeeze(1)
    return [float(weight) for weight in solution], _error(solution @ each, whole)


def _same(one: Tensor, other: Tensor) -> bool:
    return _error(one, other) <= TOLERANCE


def _error(one: Tensor, right: Tensor) -> float:
    return float((one - right).norm() / right.norm().clamp_min(1e-30))


def _cosine(one: Tensor, other: Tensor) -> float:
    return float(torch.nn.functional.cosine_similarity(one, other, dim=0))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--parts", type=int, default=4, metavar="K", help="micro-batches (default: 4)")
    parser.add_argument("--dim", type=int, default=0, help="dimension that holds the samples (default: 0)")
    parser.add_argument(
        "--window", metavar="TARGET", help="your own loop: a function window(model, micro_batches)"
    )


def run(case: Case, args: argparse.Namespace, budget: Budget) -> Outcome:
    window = find_target(args.window) if args.window else None
    found = accumulation(case, args.parts, window, args.dim)
    return Outcome((found,), conclusion(found))


def conclusion(found: Accumulation) -> str:
    subject = (
        "your loop"
        if found.own_loop
        else f"the sum of {found.parts} losses" + ("" if found.summed else f" divided by {found.parts}")
    )
    if found.coupled:
        return (
            f"accumulate: no weights make {found.parts} micro-batches equal to the whole batch "
            f"({found.residual:.1%} is left over): the loss couples samples of different micro-batches"
        )
    if found.matches:
        return f"accumulate: {subject} gives the gradient of the whole batch (off by {found.bias:.1e})"
    if found.scale:
        return f"accumulate: {subject} gives {found.scale:.3g} times the gradient of the whole batch"
    return (
        f"accumulate: {subject} is off by {found.bias:.1%} (cosine {found.cosine:.4f}); right would be "
        + ", ".join(f"{weight:.3g}" for weight in found.weights)
    )
