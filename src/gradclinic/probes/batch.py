"""Does one sample's output depend on the other samples of the batch?

Replaces all samples but one by copies of another and looks whether the output of the one that
stayed changes: an exact test, for token ids as for images. The first module on the way whose
output changes is named. Batch-norm mixes samples in training by design: it is told, and its
running statistics are used, so that it does not hide a fault elsewhere.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.modules.batchnorm import _BatchNorm

from gradclinic.case import Case
from gradclinic.errors import UsageError
from gradclinic.facts.samples import Independence
from gradclinic.probes._budget import Budget
from gradclinic.probes._restore import modules_of, random_state, undisturbed
from gradclinic.probes._trace import OUTPUTS, Event, Trace, traced
from gradclinic.probes._trainee import quiet_dropout
from gradclinic.probes._tree import rows, sample_count
from gradclinic.probes._where import function_line, module_line
from gradclinic.probes.outcome import Outcome

FACTS = (Independence,)
"""What this experiment finds out."""

NOISE = 1e-4
"""A change below this part of the output is rounding: kernels may add in another order."""


def independence(case: Case, dim: int = 0) -> Independence:
    try:
        count = sample_count(case.batch, dim)
    except UsageError as error:
        return Independence(0, 0.0, unjudged=str(error))
    if count < 2:
        return Independence(count, 0.0, unjudged="the batch holds one sample; two are needed")
    with undisturbed(case), random_state() as rewind:
        quiet_dropout(case.model)
        norms = freeze_batch_norm(case)

        def trace(chosen: list[int]) -> Trace:
            rewind()
            return traced(case, rows(case.batch, torch.tensor(chosen), dim))

        whole = trace(list(range(count)))
        fewer = _sizes_with_fewer(trace, count)
        for kept, other in ((0, count - 1), (count - 1, 0)):
            replaced = trace([kept if row == kept else other for row in range(count)])
            change, event = _first_change(whole, replaced, fewer, kept, count, dim)
            if change > NOISE:
                return _mixed(case, count, change, whole.events[event], norms)
    return Independence(count, 0.0, batch_norm=norms)


def freeze_batch_norm(case: Case) -> tuple[str, ...]:
    """Let batch-norm use running statistics, made up where it keeps none; the names of these layers."""
    names = []
    for name, module in (named for root in modules_of(case) for named in root.named_modules()):
        if isinstance(module, _BatchNorm):
            names.append(name)
            module.eval()
            if module.running_mean is None:
                like = module.weight if module.weight is not None else torch.ones(module.num_features)
                module.running_mean = torch.zeros_like(like)
                module.running_var = torch.ones_like(like)
    return tuple(names)


def _sizes_with_fewer(trace: Callable[[list[int]], Trace], count: int) -> list[list[tuple[int, ...]]] | None:
    """The shapes with one sample less: what shrinks is a batch dimension, whatever its place."""
    try:
        return trace(list(range(count - 1))).shapes()
    except Exception:  # the user's model may be built for one batch size only
        return None


def _first_change(
    whole: Trace, replaced: Trace, fewer: list[list[tuple[int, ...]]] | None, kept: int, count: int, dim: int
) -> tuple[float, int]:
    """How much the outputs of the sample that stayed changed, and the first event where it did."""
    if whole.shapes() != replaced.shapes():
        return 0.0, -1
    aligned = fewer is not None and [len(held) for held in fewer] == [
        len(event.tensors) for event in whole.events
    ]
    changes = []
    for index, (one, other) in enumerate(zip(whole.events, replaced.events, strict=True)):
        sizes = fewer[index] if aligned and fewer else [None] * len(one.tensors)
        changes.append(
            max(
                (
                    _change(a, b, _batch_dim(a, size, count, dim), kept, count)
                    for a, b, size in zip(one.tensors, other.tensors, sizes, strict=True)
                ),
                default=0.0,
            )
        )
    first = next((index for index, change in enumerate(changes) if change > NOISE), -1)
    return changes[-1], first


def _batch_dim(tensor: Tensor, fewer: tuple[int, ...] | None, count: int, dim: int) -> int | None:
    if fewer is None:
        return dim if tensor.ndim > dim and tensor.shape[dim] == count else None
    shrunk = [at for at, (size, less) in enumerate(zip(tensor.shape, fewer, strict=False)) if size != less]
    return shrunk[0] if len(shrunk) == 1 and tensor.shape[shrunk[0]] % count == 0 else None


def _change(before: Tensor, after: Tensor, dim: int | None, kept: int, count: int) -> float:
    """How much the entries of the sample that stayed changed, relative to their size.

    Where samples and positions are folded into one dimension they may lie either way round; a
    change counts only if neither reading keeps the sample as it was.
    """
    if dim is None:
        return 0.0
    before, after = before.movedim(dim, 0).double(), after.movedim(dim, 0).double()
    fold = before.shape[0] // count
    readings = [slice(kept * fold, (kept + 1) * fold)]
    if fold > 1:
        readings.append(slice(kept, None, count))
    scale = float(before.abs().nan_to_num(0.0, 0.0, 0.0).max()) if before.numel() else 0.0
    changes = []
    for rows_of_sample in readings:
        gap = (before[rows_of_sample] - after[rows_of_sample]).abs().nan_to_num(0.0, 0.0, 0.0)
        changes.append(float(gap.max()) / max(scale, 1e-12) if gap.numel() else 0.0)
    return min(changes)


def _mixed(case: Case, count: int, change: float, event: Event, norms: tuple[str, ...]) -> Independence:
    """Name the module at fault: the one that was left changed, or the one around a changed entry."""
    if event.module == OUTPUTS:
        return Independence(count, change, batch_norm=norms, where=function_line(case.forward))
    name = event.module if event.left else event.module.rpartition(".")[0]
    module = case.model.get_submodule(name)
    batch_first = getattr(module, "batch_first", None)
    kind, where = type(module).__name__, module_line(case.model, name)
    return Independence(count, change, name, kind, where or function_line(case.forward), batch_first, norms)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dim", type=int, default=0, help="dimension that holds the samples (default: 0)")


def run(case: Case, args: argparse.Namespace, budget: Budget) -> Outcome:
    found = independence(case, args.dim)
    gaps = {"independence of samples": found.unjudged} if found.unjudged else {}
    return Outcome((found,), conclusion(found), gaps=gaps)


def conclusion(found: Independence) -> str:
    if found.unjudged:
        return f"batch: not judged, for {found.unjudged}"
    norms = (
        f"; batch-norm ({len(found.batch_norm)} layers) mixes them in training, by design"
        if found.batch_norm
        else ""
    )
    if found.mixed:
        who = found.mixer or found.mixer_type or "the case's forward"
        change = f"an output changed by {found.change:.2g} of its size"
        return f"batch: samples are mixed, first in {who}; {change}{norms}"
    return f"batch: {found.samples} samples do not touch each other{norms}"
