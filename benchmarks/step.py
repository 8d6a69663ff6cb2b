"""The cost of a training step: TrainStep, Accelerate and Fabric against a loop written by hand.

All four train one and the same model on the same batch, each with an AdamW of its own, clipping to norm 1
and a schedule, on one thread. They take turns, one update each, so that whatever else the machine does meets
all of them; an update is compared with the hand-written one of the same round, in CPU time. Where weights and
moments happen to lie in memory makes a per cent or two of difference that no number of rounds averages out:
so the model is shared, and everything is built anew several times.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import time
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import CosineAnnealingLR

from benchmarks.workloads import WORKLOADS, Workload
from gradclinic import Clip, TrainStep

Batch = tuple[Tensor, Tensor]
MAX_NORM = 1.0
BUILDS = 4
MACHINERY = Workload(
    "W0",
    "100 layers of width 2: almost nothing but the step",
    lambda: nn.Sequential(*(nn.Linear(2, 2) for _ in range(100))),
    lambda: (torch.randn(2, 2), torch.randint(2, (2,))),
)


def updates_of(model: nn.Module) -> tuple[torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler]:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    return optimizer, CosineAnnealingLR(optimizer, 10_000)


def by_hand(
    workload: Workload, model: nn.Module, batch: Batch, accumulate: int
) -> Iterator[None]:
    optimizer, scheduler = updates_of(model)
    for number in itertools.count(1):
        loss = workload.loss(model, batch)
        (loss / accumulate if accumulate > 1 else loss).backward()
        if number % accumulate == 0:
            nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
            yield


def train_step(
    workload: Workload, model: nn.Module, batch: Batch, accumulate: int
) -> Iterator[None]:
    optimizer, scheduler = updates_of(model)
    step = TrainStep(model, optimizer, scheduler=scheduler, accumulate=accumulate, clip=Clip.norm(MAX_NORM))
    for _ in step.over(itertools.count()):
        if step(workload.loss(model, batch)):
            yield


def with_accelerate(
    workload: Workload, model: nn.Module, batch: Batch, accumulate: int
) -> Iterator[None]:
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=accumulate)
    model, optimizer, scheduler = accelerator.prepare(model, *updates_of(model))
    while True:
        with accelerator.accumulate(model):
            accelerator.backward(workload.loss(model, batch))
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), MAX_NORM)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
        if accelerator.sync_gradients:
            yield


def with_fabric(
    workload: Workload, model: nn.Module, batch: Batch, accumulate: int
) -> Iterator[None]:
    from lightning_fabric import Fabric

    fabric = Fabric(accelerator="cpu", devices=1)
    fabric.launch()
    bare_optimizer, scheduler = updates_of(model)
    model, optimizer = fabric.setup(model, bare_optimizer)
    for number in itertools.count(1):
        closing = number % accumulate == 0
        with fabric.no_backward_sync(model, enabled=not closing):
            loss = workload.loss(model, batch)
            fabric.backward(loss / accumulate if accumulate > 1 else loss)
        if closing:
            fabric.clip_gradients(model, optimizer, max_norm=MAX_NORM)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
            yield


CONTESTANTS: dict[str, Callable[[Workload, nn.Module, Batch, int], Iterator[None]]] = {
    "by hand": by_hand,
    "TrainStep": train_step,
    "Accelerate": with_accelerate,
    "Fabric": with_fabric,
}


def measured(workload: Workload, accumulate: int, rounds: int) -> dict[str, list[float]]:
    """For each contestant the CPU seconds of its updates, one a round."""
    times: dict[str, list[float]] = {name: [] for name in CONTESTANTS}
    for seed in range(BUILDS):
        taken(workload, accumulate, rounds // BUILDS, seed, times)
    return times


def extra(own: list[float], by_hand: list[float]) -> str:
    """The median extra share in per cent, and how far off it may be by chance (one standard error)."""
    shares = [100 * (mine / hand - 1) for mine, hand in zip(own, by_hand, strict=True)]
    middle = statistics.median(shares)
    spread = statistics.median(abs(share - middle) for share in shares)
    # 1.48 makes a standard deviation of it, 1.25 the error of a median out of that of a mean.
    return f"{middle:+.1f} ± {1.25 * 1.48 * spread / len(shares) ** 0.5:.1f} %"


def taken(
    workload: Workload, accumulate: int, rounds: int, seed: int, times: dict[str, list[float]]
) -> None:
    """Some rounds on a new model, added to `times`."""
    torch.manual_seed(seed)
    model, batch = workload.model(), workload.batch()
    # Another one is built first each time, and begins each round: none has always the same neighbour.
    names = turned(list(CONTESTANTS), seed)
    runs = {name: CONTESTANTS[name](workload, model, batch, accumulate) for name in names}
    for run in runs.values():
        for _ in range(5):
            next(run)
    for turn in range(rounds):
        for name in turned(names, turn):
            began = time.process_time()
            next(runs[name])
            times[name].append(time.process_time() - began)


def turned(names: list[str], by: int) -> list[str]:
    first = by % len(names)
    return names[first:] + names[:first]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rounds", type=int, default=100)
    arguments.add_argument("--accumulate", type=int, nargs="*", default=[1, 4])
    given = arguments.parse_args()
    torch.set_num_threads(1)
    print("| workload | accumulate | by hand, ms | " + " | ".join(list(CONTESTANTS)[1:]) + " |")
    print("|---|---|---|" + "---|" * (len(CONTESTANTS) - 1))
    for workload in (MACHINERY, *WORKLOADS):
        for accumulate in given.accumulate:
            times = measured(workload, accumulate, given.rounds)
            hand = times.pop("by hand")
            plain = 1000 * statistics.median(hand)
            cells = " | ".join(extra(own, hand) for own in times.values())
            print(f"| {workload.name} {workload.title} | {accumulate} | {plain:.1f} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
