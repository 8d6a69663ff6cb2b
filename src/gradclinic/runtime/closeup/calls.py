"""Calls to a loss: how the input was made, whether the target fits."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import torch
from torch.nn import functional
from torch.utils.weak import WeakTensorKeyDictionary

from gradclinic.facts.location import Location
from gradclinic.facts.loss import LossCall, Op
from gradclinic.runtime.closeup.trail import RESHAPING, Made, Trail
from gradclinic.runtime.values import number, readable

WATCHED = frozenset(
    {
        "cross_entropy",
        "nll_loss",
        "binary_cross_entropy",
        "binary_cross_entropy_with_logits",
        "mse_loss",
        "l1_loss",
        "smooth_l1_loss",
        "huber_loss",
        "gaussian_nll_loss",
        "ctc_loss",
    }
)
_MOST_ELEMENTS = 4_000_000
_OF_DIFFERENCES = frozenset({"mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"})
_OF_A_DIFFERENCE = frozenset(
    ["pow", "abs", "add", "sub", "rsub", "mul", "div", "sqrt", "log", "cosh", "clamp", "where", "maximum"]
)
"""What may stand between a difference and its mean."""


@dataclass
class Padding:
    """Ends of rows that repeat one value, in the tokens a model was given."""

    runs: tuple[int, ...]
    width: int


class Calls:
    def __init__(self, trail: Trail, untrained: Callable[[], bool]) -> None:
        self._trail = trail
        self._untrained = untrained
        self._calls: dict[tuple[str, Location, int], LossCall] = {}
        """By place and number of classes: one line may hold the losses of several heads."""
        self._tokens: Padding | None = None
        self._spelled = WeakTensorKeyDictionary()
        """Tables of tokens of which the model was given a column."""
        self._summed = WeakTensorKeyDictionary()

    def found(self) -> list[LossCall]:
        return list(self._calls.values())

    def tokens(self, indices: Any) -> None:
        """An embedding looked these up."""
        table = getattr(indices, "_base", None)
        if table is not None and indices.numel() < table.numel():
            self._spelled[table] = None
        if isinstance(indices, torch.Tensor) and indices.dim() == 2 and readable(indices):
            ends = _ends(indices)
            self._tokens = None if ends is None else Padding(ends[1], indices.shape[1])

    def note(
        self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any, where: Location
    ) -> None:
        given = _signature(name).bind(*args, **kwargs)
        given.apply_defaults()
        call = self._read(name, given.arguments, result, where)
        if call.reduction == "sum":
            self._summed[result] = _key(call)
        self.add(call)

    def objective(self, root: torch.Tensor) -> None:
        """Backward begins here: a sum that is its root is divided by nothing."""
        key = self._summed.get(root)  # type: ignore[no-untyped-call]
        if key is not None and key in self._calls:
            self._calls[key] = replace(self._calls[key], divided=False)

    def difference(self, reduced: Made, where: Location, result: torch.Tensor) -> None:
        """A mean of differences written by hand: `((prediction - target) ** 2).mean()`."""
        made: Made | None = reduced
        while made is not None and made.op.name in _OF_A_DIFFERENCE and not _pairs_all(made):
            made = next((parent for parent in made.parents if parent.has_graph), None)
        if made is not None and _pairs_all(made):
            one, other = made.given
            at = made.op.where or where
            self.add(
                LossCall("difference", at, input_shape=one, target_shape=other, trains=result.requires_grad)
            )

    def add(self, call: LossCall) -> None:
        key = _key(call)
        known = self._calls.get(key)
        if known is None:
            self._calls[key] = call
            return
        self._calls[key] = replace(
            known,
            calls=known.calls + 1,
            trains=known.trains or call.trains,
            target_range=_wider(known.target_range, call.target_range),
            saturated_share=max(known.saturated_share or 0.0, call.saturated_share or 0.0),
            padding_share=known.padding_share if call.padding_share is not None else None,
        )

    def _read(self, name: str, given: dict[str, Any], result: Any, where: Location) -> LossCall:
        if name == "ctc_loss":
            given = {**given, "input": given["log_probs"], "target": given["targets"]}
        input, target = given["input"], given["target"]
        chain: tuple[Op, ...] = self._trail.chain(input)
        call = LossCall(
            name,
            where,
            made_by=chain,
            reduction=given["reduction"],
            divided=given["reduction"] == "sum",
            trains=isinstance(result, torch.Tensor) and result.requires_grad,
            input_shape=tuple(input.shape),
            target_shape=tuple(target.shape),
            target_is_float=target.is_floating_point(),
            untrained=self._untrained(),
            first_value=number(result) if isinstance(result, torch.Tensor) and result.dim() == 0 else None,
        )
        if not readable(target) or not readable(input) or input.numel() > _MOST_ELEMENTS:
            return call
        if name in ("cross_entropy", "nll_loss") and not target.is_floating_point() and target.numel():
            call = replace(call, **self._class_target(given))
        if name in _OF_DIFFERENCES and call.untrained and target.is_floating_point():
            size = target.detach().float()
            cost = size**2 if name == "mse_loss" else size.abs()
            call = replace(call, value_of_zeros=number(cost.mean()))
        if name == "binary_cross_entropy":
            # A certainty that is right costs nothing and has nothing to learn: only the wrong ones hurt.
            inside = input.detach()
            sure, wrong = (inside == 0) | (inside == 1), (inside - target.detach()).abs() >= 0.5
            call = replace(call, saturated_share=number((sure & wrong).float().mean()))
        return call

    def _class_target(self, given: dict[str, Any]) -> dict[str, Any]:
        target, ignored = given["target"], given["ignore_index"]
        about: dict[str, Any] = {"ignore_index": None if ignored == -100 else ignored}
        counted = target[target != ignored]
        if counted.numel():
            about["target_range"] = (float(counted.min()), float(counted.max()))
        column_of = self._spelled_out(target)
        rows = column_of if column_of is not None else self._in_rows(target)
        ends = _ends(rows) if rows is not None else None
        if rows is None or ends is None or ends[0] == ignored or given.get("weight") is not None:
            return about
        value, runs = ends
        if column_of is not None:
            padded = int((rows == value).sum()) == sum(runs)  # a token of the vocabulary is in the middle too
        else:
            padded = self._tokens is not None and _same_rows(runs, self._tokens.runs)
        if padded:
            about["padding_share"] = sum(runs) / rows.numel()
            about["padding_value"] = value
        return about

    def _spelled_out(self, target: torch.Tensor) -> torch.Tensor | None:
        """The table, a sequence in each row, that a step of a decoder was given a column of."""
        table = target._base
        if target.dim() != 1 or table is None or table.dim() != 2 or table not in self._spelled:
            return None
        for rows in (table, table.t()):
            if (target.shape[0], target.stride(0)) == (rows.shape[0], rows.stride(0)):
                return rows
        return None

    def _in_rows(self, target: torch.Tensor) -> torch.Tensor | None:
        """As it was before it was flattened."""
        if target.dim() == 2:
            return target
        made = self._trail.of(target)
        while made is not None and made.op.name in RESHAPING and made.given:
            before = made.given[0]
            if len(before) == 2 and before[0] * before[1] == target.numel():
                return target.reshape(before)
            made = made.parents[0] if made.parents else None
        return None


def _pairs_all(made: Made) -> bool:
    """Takes (N,) from (N, 1). A target carries no graph: two predictions may be compared pair by pair."""
    if made.op.name not in ("sub", "rsub") or sorted(made.carrying) != [False, True]:
        return False
    one, other = made.given
    return {len(one), len(other)} == {1, 2} and {one, other} == {(max(one),), (max(one), 1)}


def _key(call: LossCall) -> tuple[str, Location, int]:
    shape = call.input_shape or ()
    return call.loss, call.where, shape[1] if len(shape) > 1 else 0


@cache
def _signature(name: str) -> inspect.Signature:
    return inspect.signature(inspect.unwrap(vars(functional)[name]))


def _ends(rows: torch.Tensor) -> tuple[int, tuple[int, ...]] | None:
    """The value that fills the ends of rows, and how far in each; None when no value does."""
    if rows.is_floating_point() or rows.shape[0] < 2 or rows.shape[1] < 3 or rows.numel() > _MOST_ELEMENTS:
        return None
    value = int(rows[:, -1].mode().values)
    differs = (rows != value).int().flip(1)
    runs = torch.where(differs.any(1), differs.argmax(1), rows.shape[1]).tolist()
    if len(set(runs)) < 2 or sum(1 for run in runs if run >= 2) < 0.3 * len(runs):
        return None
    return value, tuple(runs)


def _same_rows(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Both end in filling at the same places, up to a shift by one."""
    if len(one) != len(other):
        return False
    return all(abs(a - b) <= 1 for a, b in zip(one, other, strict=True))


def _wider(one: tuple[float, float] | None, other: tuple[float, float] | None) -> tuple[float, float] | None:
    if one is None or other is None:
        return one or other
    return min(one[0], other[0]), max(one[1], other[1])
