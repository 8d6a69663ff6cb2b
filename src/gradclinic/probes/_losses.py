"""Which of torch's losses an objective calls, and what they would give for a guess."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from gradclinic.case import Case
from gradclinic.facts import Location
from gradclinic.facts.levels import LossLevel
from gradclinic.probes._trainee import loss_of
from gradclinic.probes._where import caller

SURE = 30.0
"""A logit that is as good as certain, without becoming infinite."""


@dataclass(frozen=True)
class LossCall:
    """One call of a loss from `torch.nn.functional`, with all that is needed to make it again."""

    function: Callable[..., Tensor]
    input: Tensor
    target: Tensor
    options: Mapping[str, Any]
    value: Tensor
    where: Location | None

    @property
    def name(self) -> str:
        return self.function.__name__

    def on(self, guess: Tensor) -> float:
        """The same loss of another prediction."""
        return float(self.function(guess, self.target, **self.options).detach().sum())


class LossWatch(TorchFunctionMode):
    """Records the losses called inside the block."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[LossCall] = []

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        value = func(*args, **(kwargs or {}))
        if func in _GUESSES:
            given = inspect.signature(func).bind(*args, **(kwargs or {})).arguments
            given = {name: part for name, part in given.items() if part is not None}
            prediction, target = given.pop("input"), given.pop("target")
            self.calls.append(LossCall(func, prediction.detach(), target, given, value.detach(), caller()))
        return value


def watch_losses(case: Case, batch: Any = None) -> tuple[float, list[LossCall]]:
    """The objective on one batch and the losses it called."""
    with LossWatch() as watch:
        total = loss_of(case, batch)
    return total, [call for call in watch.calls if call.value.numel() == 1]


def level(call: LossCall) -> LossLevel:
    """Where this loss stands between its floor, an informed guess and a blind one."""
    blind, informed, best = _GUESSES[call.function](call)
    return LossLevel(
        loss=call.name,
        value=float(call.value.sum()),
        chance=call.on(blind),
        base_rate=call.on(informed),
        floor=call.on(best),
        classes=_classes(call),
        where=call.where,
    )


def floor_of(total: float, levels: list[LossLevel]) -> float | None:
    """The least the objective can be, known when it is the sum of the losses it called."""
    if not levels or not math.isclose(total, sum(each.value for each in levels), rel_tol=1e-4, abs_tol=1e-7):
        return None
    return sum(each.floor for each in levels)


def _classes(call: LossCall) -> int:
    if call.function in (functional.cross_entropy, functional.nll_loss):
        return int(call.input.shape[1 if call.input.ndim > 1 else 0])
    return (
        2
        if call.function in (functional.binary_cross_entropy, functional.binary_cross_entropy_with_logits)
        else 0
    )


Guesses = tuple[Tensor, Tensor, Tensor]


def _multiclass(call: LossCall) -> Guesses:
    """Uniform; the classes' frequencies in the batch; the targets themselves."""
    at = 1 if call.input.ndim > 1 else 0
    share = _one_hot(call, at)
    smoothing = float(call.options.get("label_smoothing", 0.0))
    wanted = share * (1 - smoothing) + smoothing / call.input.shape[at]
    others = [dim for dim in range(share.ndim) if dim != at]
    mean = share.sum(others, keepdim=True) if others else share
    frequency = (mean / mean.sum().clamp_min(1e-30)).expand_as(share)
    frequency = frequency * (1 - smoothing) + smoothing / call.input.shape[at]
    uniform = torch.full_like(call.input, -math.log(call.input.shape[at]))
    return uniform, frequency.clamp_min(math.exp(-SURE)).log(), wanted.clamp_min(math.exp(-SURE)).log()


def _one_hot(call: LossCall, at: int) -> Tensor:
    target = call.target
    if target.is_floating_point():
        return target.to(call.input)
    ignored = target == call.options.get("ignore_index", -100)
    hot = functional.one_hot(target.masked_fill(ignored, 0), call.input.shape[at]).to(call.input)
    hot = hot * (~ignored).unsqueeze(-1).to(hot)
    moved: Tensor = hot.movedim(-1, at)
    return moved


def _binary_logits(call: LossCall) -> Guesses:
    target = call.target.to(call.input)
    weight = call.options.get("pos_weight", torch.ones((), dtype=target.dtype, device=target.device))
    rate = target.mean(0, keepdim=True) if target.ndim > 1 else target.mean().expand(target.shape)
    informed = _logit(weight, rate).expand_as(call.input)
    return torch.zeros_like(call.input), informed.contiguous(), _logit(weight, target)


def _logit(weight: Tensor, rate: Tensor) -> Tensor:
    """The prediction that minimises the loss at this rate of positives."""
    return ((weight * rate).clamp_min(1e-12).log() - (1 - rate).clamp_min(1e-12).log()).clamp(-SURE, SURE)


def _binary(call: LossCall) -> Guesses:
    target = call.target.to(call.input)
    rate = target.mean().expand_as(call.input).clamp(0, 1)
    return torch.full_like(call.input, 0.5), rate.contiguous(), target.clamp(0, 1)


def _regression(call: LossCall) -> Guesses:
    target = call.target.to(call.input)
    several = target.ndim > 0 and target.shape[0] > 1
    centre = (
        target.median(0, keepdim=True).values
        if call.function is functional.l1_loss
        else target.mean(0, keepdim=True)
    )
    informed = centre.expand_as(target).contiguous() if several else target
    return torch.zeros_like(target), informed, target


_GUESSES: dict[object, Callable[[LossCall], Guesses]] = {
    functional.cross_entropy: _multiclass,
    functional.nll_loss: _multiclass,
    functional.binary_cross_entropy_with_logits: _binary_logits,
    functional.binary_cross_entropy: _binary,
    functional.mse_loss: _regression,
    functional.l1_loss: _regression,
    functional.smooth_l1_loss: _regression,
    functional.huber_loss: _regression,
}
"""For each loss, three predictions: a blind guess, the best constant one, and the best there is."""
