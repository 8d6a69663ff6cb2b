"""What a TrainStep is built from, checked before anything trains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import torch
from torch import nn
from torch.optim import LBFGS, Optimizer
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

from gradclinic.train.clip import Clip
from gradclinic.train.errors import TrainStepError
from gradclinic.train.ranks import Ranks

Part = TypeVar("Part")


def models_of(model: nn.Module | Sequence[nn.Module]) -> list[nn.Module]:
    return _listed(model, nn.Module, "model", "a torch.nn.Module or a list of them")


def optimizers_of(optimizer: Optimizer | Sequence[Optimizer], models: Sequence[nn.Module]) -> list[Optimizer]:
    optimizers = _listed(optimizer, Optimizer, "optimizer", "a torch optimizer or a list of them")
    in_models = {id(parameter) for model in models for parameter in model.parameters()}
    for one in optimizers:
        name = type(one).__name__
        if isinstance(one, LBFGS):
            raise TrainStepError(
                "TrainStep cannot drive LBFGS, which calls the loss several times per update; call "
                "optimizer.step(closure) in your own loop"
            )
        held = [parameter for group in one.param_groups for parameter in group["params"]]
        if in_models.isdisjoint(map(id, held)):
            raise TrainStepError(
                f"the {name} given to TrainStep holds no parameter of the model; build it from "
                "model.parameters() after the model has its final form (moved, sharded, head replaced)"
            )
        if any(parameter.dtype is torch.float16 for parameter in held):
            raise TrainStepError(
                f"the {name} holds float16 weights, whose updates round to nothing; keep them in float32 "
                "and pass precision='fp16'"
            )
    return optimizers


def schedulers_of(
    scheduler: LRScheduler | Sequence[LRScheduler] | None, optimizers: Sequence[Optimizer]
) -> list[LRScheduler]:
    if scheduler is None:
        return []
    schedulers = _listed(scheduler, LRScheduler, "scheduler", "a torch LR scheduler or a list of them")
    for one in schedulers:
        name = type(one).__name__
        if isinstance(one, ReduceLROnPlateau):
            raise TrainStepError(
                "ReduceLROnPlateau follows a metric, not the updates; leave it out of TrainStep and call "
                "scheduler.step(metric) after each evaluation"
            )
        if not any(one.optimizer is optimizer for optimizer in optimizers):
            raise TrainStepError(
                f"the {name} given to TrainStep schedules another optimizer; build it on the one given here"
            )
    return schedulers


def check_options(accumulate: object, clip: object, nonfinite: object, tail: object) -> None:
    if isinstance(accumulate, bool) or not isinstance(accumulate, int) or accumulate < 1:
        raise TrainStepError(
            f"TrainStep(accumulate={accumulate!r}): expected a whole number of micro-batches, 1 or more"
        )
    if clip is not None and not isinstance(clip, Clip):
        raise TrainStepError(
            f"TrainStep(clip={clip!r}): expected a Clip, such as Clip.norm(1.0) or Clip.value(0.5)"
        )
    if nonfinite not in ("skip", "stop", "rollback"):
        raise TrainStepError(f"TrainStep(nonfinite={nonfinite!r}): expected 'skip', 'stop' or 'rollback'")
    if tail not in ("step", "drop"):
        raise TrainStepError(f"TrainStep(tail={tail!r}): expected 'step' or 'drop'")


def check_ranks(ranks: Ranks, unfreeze: Mapping[int, Sequence[str]] | None, term_norms_every: int) -> None:
    if unfreeze and (ranks.replicas or ranks.shards):
        raise TrainStepError(
            "TrainStep(unfreeze=…) does not work on a DDP or FSDP2 model, which fix what trains when they "
            "wrap it; unfreeze by hand and wrap again"
        )
    if term_norms_every and ranks.shards:
        raise TrainStepError(
            "TrainStep(term_norms_every=…) does not work on an FSDP2 model, whose gradients exist in parts "
            "only; measure the terms on one process"
        )


def check_joined(precisions: Sequence[str]) -> None:
    if len(set(precisions)) > 1:
        raise TrainStepError(
            f"over(also=…) joins steps of precision {' and '.join(sorted(set(precisions)))}; one forward has "
            "one precision, give all the same"
        )


def device_of(optimizers: Sequence[Optimizer]) -> torch.device:
    device: torch.device = optimizers[0].param_groups[0]["params"][0].device
    return device


def _listed(given: Part | Sequence[Part], kind: type, name: str, expected: str) -> list[Part]:
    parts: list[Any] = list(given) if isinstance(given, list | tuple) else [given]
    if not parts or not all(isinstance(part, kind) for part in parts):
        what = ", ".join(type(part).__name__ for part in parts) or "an empty list"
        raise TrainStepError(f"TrainStep({name}=…) was given {what}; expected {expected}")
    return parts
