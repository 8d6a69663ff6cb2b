"""What two ranks do together, told by each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

from gradclinic import Clip, Noise, TrainStep
from gradclinic.train import CheckpointError, RanksDivergedError, TrainStepError
from tests.train.plain import Batch, batches_of, loss_of, small_model

UNEVEN = [[4, 2, 3, 5, 1], [6, 3, 2]]
"""Samples of each micro-batch of each rank: one has two batches more."""
STORIES: dict[str, Callable[[int, str], Any]] = {}


def story(tell: Callable[[int, str], Any]) -> Callable[[int, str], Any]:
    STORIES[tell.__name__] = tell
    return tell


def tell_all(rank: int, directory: str) -> dict[str, Any]:
    return {name: tell(rank, directory) for name, tell in STORIES.items()}


def wrapped(kind: str, dtype: torch.dtype = torch.float64) -> nn.Module:
    model = small_model(dtype)
    if kind == "DDP":
        return DistributedDataParallel(model)
    fully_shard(model[0])
    return fully_shard(model)


def whole(tensors: Iterable[Tensor]) -> list[Tensor]:
    return [(t.full_tensor() if hasattr(t, "full_tensor") else t).detach().clone() for t in tensors]


def final_weights(kind: str, batches: Iterable[Batch]) -> list[Tensor]:
    model = wrapped(kind)
    step = TrainStep(model, torch.optim.SGD(model.parameters(), lr=0.1), accumulate=2, clip=Clip.norm(0.5))
    for batch in step.over(batches):
        step(loss_of(model, batch), weight=len(batch[0]))
    return whole(model.parameters())


@story
def uneven_inputs(rank: int, directory: str) -> dict[str, list[Tensor]]:
    found = {}
    for kind in ("DDP", "FSDP2"):
        batches = batches_of(UNEVEN[rank], seed=rank)
        found[kind, "sized"] = final_weights(kind, batches)
        found[kind, "unsized"] = final_weights(kind, iter(batches))
    return found


@story
def bytes_reduced(rank: int, directory: str) -> tuple[int, int, int]:
    """By the account of the step, and by a hook that sees what DDP really sends."""
    model = wrapped("DDP")
    sent = []

    def counting(group, bucket):  # type: ignore[no-untyped-def]
        sent.append(bucket.buffer().numel() * bucket.buffer().element_size())
        return allreduce_hook(group, bucket)

    model.register_comm_hook(None, counting)
    step = TrainStep(model, torch.optim.SGD(model.parameters(), lr=0.1), accumulate=4)
    for batch in step.over(batches_of([4] * 8, seed=rank)):
        step(loss_of(model, batch))
    return step.traffic.reduced, step.traffic.deferred, sum(sent)


@story
def window_closed_early(rank: int, directory: str) -> dict[str, list[Tensor]]:
    found = {}
    for kind in ("DDP", "FSDP2"):
        model = wrapped(kind)
        step = TrainStep(model, torch.optim.SGD(model.parameters(), lr=0.1), accumulate=4)
        for number, batch in enumerate(step.over(batches_of([3, 5, 4], seed=rank))):
            if step(loss_of(model, batch), weight=len(batch[0]), last=number == 1):
                break
        found[kind] = whole(p.grad for p in model.parameters() if p.grad is not None)
    return found


@story
def one_rank_changes_a_weight(rank: int, directory: str) -> str:
    model = wrapped("DDP")
    step = TrainStep(model, torch.optim.SGD(model.parameters(), lr=0.1), check_ranks_every=1)
    try:
        for number, batch in enumerate(step.over(batches_of([4, 4], seed=rank))):
            if number == 1 and rank == 1:
                with torch.no_grad():
                    model.module[2].bias[0] += 1e-9
            step(loss_of(model, batch))
    except RanksDivergedError as error:
        return f"at update {step.updates}: {error}"
    return "nothing noticed"


@story
def noise_and_average(rank: int, directory: str) -> dict[str, list[Tensor]]:
    found = {}
    for kind in ("DDP", "FSDP2"):
        model = wrapped(kind)
        optimizer = torch.optim.AdamW(model.parameters())
        step = TrainStep(model, optimizer, noise=Noise(), ema=0.5, check_ranks_every=1)
        for batch in step.over(batches_of([4] * 3, seed=rank)):
            step(loss_of(model, batch))
        found[kind] = whole([*model.parameters(), *step.ema.state_dict()["average"]])
    return found


def resumable(kind: str, rank: int) -> tuple[nn.Module, TrainStep, list[Batch]]:
    torch.manual_seed(rank)
    model = wrapped(kind, torch.float32)
    optimizer = torch.optim.AdamW(model.parameters())
    step = TrainStep(model, optimizer, accumulate=2, precision="fp16", ema=0.9, noise=Noise())
    return model, step, batches_of([4] * 8, torch.float32, seed=rank)


def trained(model: nn.Module, step: TrainStep, batches: list[Batch]) -> list[Tensor]:
    for x, y in step.over(batches):
        step(loss_of(model, (x + torch.randn_like(x), y)))
    return whole([*model.parameters(), *step.ema.state_dict()["average"], torch.randn(2)])


@story
def checkpoints(rank: int, directory: str) -> dict[str, tuple[list[Tensor], list[Tensor]]]:
    """Without and with an interruption: DDP inside a window, FSDP2 after an update."""
    found = {}
    for kind, at in (("DDP", 3), ("FSDP2", 4)):
        straight = trained(*resumable(kind, rank))
        model, step, batches = resumable(kind, rank)
        for x, y in step.over(batches):
            step(loss_of(model, (x + torch.randn_like(x), y)))
            if step.losses == at:
                step.save(f"{directory}/{kind}")
                break
        model, step, batches = resumable(kind, rank)
        torch.randn(50)
        step.resume(f"{directory}/{kind}")
        found[kind] = (straight, trained(model, step, batches))
    return found


@story
def inside_a_sharded_window(rank: int, directory: str) -> str:
    model, step, batches = resumable("FSDP2", rank)
    for batch in step.over(batches):
        step(loss_of(model, batch))
        try:
            step.state_dict()
        except TrainStepError as error:
            return str(error)
    return "saved"


@story
def a_forgotten_loss(rank: int, directory: str) -> str:
    model = wrapped("DDP")
    step = TrainStep(model, torch.optim.SGD(model.parameters(), lr=0.1))
    passing: Iterator[Batch] = step.over(batches_of([4, 4], seed=rank))
    next(passing)
    try:
        next(passing)
    except TrainStepError as error:
        return str(error)
    return "went on"


@story
def a_checkpoint_of_two_ranks_on_one(rank: int, directory: str) -> str:
    from gradclinic.train.checkpoint import load

    model = small_model(torch.float32)
    step = TrainStep(model, torch.optim.AdamW(model.parameters()), precision="fp16", ema=0.9, noise=Noise())
    try:
        load(step, f"{directory}/DDP/checkpoint-000001")
    except CheckpointError as error:
        return str(error)
    return "loaded"
