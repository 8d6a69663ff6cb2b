"""Softmaxes whose results are summed over another axis than the one they normalised."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from gradclinic.facts.location import Location
from gradclinic.facts.loss import Op, SoftmaxUse
from gradclinic.runtime.closeup.trail import Made, Trail

_KEEPS_ORDER = frozenset({"dropout", "unsqueeze", "__getitem__", "view", "reshape", "contiguous", "expand"})


class Weights:
    def __init__(self, trail: Trail) -> None:
        self._trail = trail
        self._found: dict[Location, SoftmaxUse] = {}

    def found(self) -> Iterator[SoftmaxUse]:
        yield from self._found.values()

    def note(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], where: Location) -> None:
        if not args or (name == "einsum") != isinstance(args[0], str):
            return
        if name == "einsum":
            self._contracted(args[0], args[1:], where)
        elif name == "matmul" and isinstance(args[0], torch.Tensor):
            self._multiplied(args[0], where)
        elif name == "sum" and isinstance(args[0], torch.Tensor):
            self._summed(args[0], kwargs.get("dim", args[1] if len(args) > 1 else None), where)

    def _multiplied(self, left: torch.Tensor, where: Location) -> None:
        """A product of matrices sums over the last axis of its left factor."""
        made = self._trail.of(left)
        while made is not None and made.op.name == "dropout" and len(made.parents) == 1:
            made = made.parents[0]
        if made is None:
            return
        op, axes = made.op, len(made.op.shape or ())
        if op.name == "softmax" and axes >= 3 and op.dim not in (None, axes - 1):
            self._tell(op, where)
            return
        over_samples, single = _over_samples(made), _over_one(made.through())
        if over_samples is not None and left.dim() == 3 and left.shape[-1] == (over_samples.shape or ())[-1]:
            self._tell(over_samples, where)
        elif single is not None and left.dim() >= 3 and left.shape[-1] > 1:
            self._tell(single, where)

    def _contracted(self, equation: str, operands: tuple[Any, ...], where: Location) -> None:
        """Samples run along the first axis of both factors and of the result."""
        inputs, arrow, output = equation.replace(" ", "").partition("->")
        letters = inputs.split(",")
        if not arrow or "." in equation or len(letters) != 2 or len(operands) != 2:
            return
        for own, other, operand in zip(letters, reversed(letters), operands, strict=True):
            if not (own[:1] == other[:1] == output[:1]) or set(own) <= set(output):
                continue
            op = _over_samples(self._trail.of(operand)) if isinstance(operand, torch.Tensor) else None
            if op is not None and len(op.shape or ()) == len(own):
                self._tell(op, where)

    def _summed(self, product: torch.Tensor, axes: Any, where: Location) -> None:
        made = self._trail.of(product)
        if made is None or made.op.name != "mul" or not isinstance(axes, int):
            return
        axis = axes % max(product.dim(), 1)
        for parent in made.parents:
            op = _over_samples(parent) or _over_one(parent)
            shape = (op.shape or ()) if op is not None else ()
            # Each weight stands before its own row of values: (B, N) or (B, N, 1) times (B, N, D).
            in_front = 0 < axis < len(shape) and product.shape[: axis + 1] == shape[: axis + 1]
            if op is not None and in_front and shape[axis] > 1:
                self._tell(op, where)

    def _tell(self, softmax: Op, used: Location) -> None:
        if softmax.where is not None:
            self._found.setdefault(softmax.where, SoftmaxUse(softmax, used))


def _over_samples(made: Made | None) -> Op | None:
    """The softmax over the first of several axes that this is, but for axes of length one."""
    while made is not None and made.op.name in _KEEPS_ORDER and len(made.parents) == 1:
        made = made.parents[0]
    if made is None or made.op.name != "softmax" or made.op.dim != 0 or not made.op.shape:
        return None
    return made.op if made.op.shape[0] > 1 and max(made.op.shape[1:], default=1) > 1 else None


def _over_one(made: Made | None) -> Op | None:
    """The softmax over an axis of length one that this is: all of its weights are 1."""
    op = made.op if made is not None else None
    if op is None or op.name != "softmax" or not op.shape or op.dim is None or op.dim == 0:
        return None
    return op if op.shape[op.dim] == 1 and max(op.shape[1:]) > 1 else None
