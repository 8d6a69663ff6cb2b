"""The state of a step: all that the rest of a run depends on, apart from the weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from gradclinic.train import rng
from gradclinic.train.errors import CheckpointError, TrainStepError
from gradclinic.train.updater import Counters

if TYPE_CHECKING:
    from gradclinic.train.step import TrainStep

FORMAT = 1


def capture(step: TrainStep) -> dict[str, Any]:
    if step.awaiting:
        raise TrainStepError(
            "the state was asked for between a batch and its loss, and would lose that batch; save after "
            "step(loss)"
        )
    updater, window = step.updater, step.window
    if window.count and step.ranks.shards:
        raise TrainStepError(
            f"the state was asked for after {window.count} of {step.accumulate} micro-batches, where FSDP2 "
            "holds gradients not yet reduced; save when step(loss) has returned an update"
        )
    return {
        "format": FORMAT,
        "optimizers": [optimizer.state_dict() for optimizer in updater.optimizers],
        "schedulers": [scheduler.state_dict() for scheduler in updater.schedulers],
        "scale": updater.scale.state_dict() if updater.scale else None,
        "ema": updater.ema.state_dict() if updater.ema else None,
        "noise": updater.noise.state_dict() if updater.noise else None,
        "clip": updater.clip.state_dict(),
        "counters": asdict(updater.counters),
        "epoch": step.epoch,
        "losses": step.losses,
        "dropped": step.dropped,
        "window": window.state_dict(),
        "gradients": [p.grad for p in updater.layout.parameters] if window.count else None,
        "rng": rng.capture(),
        "data": step.feed.state_dict() if step.feed is not None else None,
    }


def restore(step: TrainStep, saved: Mapping[str, Any]) -> None:
    _check(step, saved)
    updater = step.updater
    if step.feed is not None:
        step.feed.abandon()
    for optimizer, state in zip(updater.optimizers, saved["optimizers"], strict=True):
        optimizer.load_state_dict(state)
    for scheduler, state in zip(updater.schedulers, saved["schedulers"], strict=True):
        scheduler.load_state_dict(state)
    for name, part in _optional(step).items():
        if part is not None:
            part.load_state_dict(saved[name])
    updater.clip.load_state_dict(saved["clip"])
    updater.counters = Counters(**saved["counters"])
    if updater.unfreezing is not None:
        updater.unfreezing.apply(updater.counters.updates)
    step.epoch, step.losses, step.dropped = saved["epoch"], saved["losses"], saved["dropped"]
    step.window.load_state_dict(saved["window"])
    updater.zero()
    if saved["gradients"] is not None:
        for parameter, gradient in zip(updater.layout.parameters, saved["gradients"], strict=True):
            parameter.grad = None if gradient is None else gradient.to(parameter.device).clone()
    rng.restore(saved["rng"])
    step.resume_data = None if saved["data"] is None else {**saved["data"], "rng": saved["rng"]}


def _optional(step: TrainStep) -> dict[str, Any]:
    return {"scale": step.updater.scale, "ema": step.updater.ema, "noise": step.updater.noise}


def _check(step: TrainStep, saved: Mapping[str, Any]) -> None:
    """Nothing is loaded unless all of it can be."""
    if not isinstance(saved, Mapping) or saved.get("format") != FORMAT:
        raise CheckpointError(
            f"this is not a state of TrainStep in format {FORMAT}; expected what step.state_dict() returned"
        )
    for name, have in (("optimizers", step.updater.optimizers), ("schedulers", step.updater.schedulers)):
        if len(saved[name]) != len(have):
            raise CheckpointError(
                f"the saved state has {len(saved[name])} {name}, this TrainStep {len(have)}; build it as the "
                "saved run did"
            )
    for optimizer, state in zip(step.updater.optimizers, saved["optimizers"], strict=True):
        sizes = [len(group["params"]) for group in optimizer.param_groups]
        saved_sizes = [len(group["params"]) for group in state["param_groups"]]
        if sizes != saved_sizes:
            raise CheckpointError(
                f"the saved {type(optimizer).__name__} has parameter groups of {saved_sizes} tensors, this "
                f"one of {sizes}; build model and optimizer as the saved run did"
            )
    for name, part in _optional(step).items():
        if (part is None) != (saved[name] is None):
            word = {"scale": "a loss scale (precision='fp16')", "ema": "ema=", "noise": "noise="}[name]
            has, lacks = ("the saved run", "this one") if part is None else ("this run", "the saved one")
            raise CheckpointError(f"{has} has {word} and {lacks} has not; build it as the saved run did")
    if saved["window"]["weights"] and len(saved["window"]["weights"]) >= step.accumulate:
        raise CheckpointError(
            f"the state was saved inside a window of more than {step.accumulate} micro-batches; "
            "resume with the same accumulate="
        )
