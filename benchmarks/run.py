"""What watching costs: the bare loop against the same loop under `gradclinic run`, in its steady state.

Each contestant trains in a process of its own, on one thread, and takes turns with the others, ten
updates at a time, so that whatever else the machine does meets all of them. CPU time is compared
within a round. The tape of the watched run is kept short, so that it is full, as it is after the first
thousand updates of a real run, before the clock starts.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from importlib.util import find_spec
from multiprocessing.connection import Connection
from typing import Any

import torch
from torch import nn

from benchmarks.workloads import WORKLOADS

UPDATES = 10
"""One in ten is measured in more detail, so a turn holds one of each kind."""
WARM_UP = 3
TAPE = 60

Watcher = Callable[[nn.Module], Any]


def train(workload: Any, after_update: Callable[[nn.Module, int], object] | None = None) -> Iterator[None]:
    model = workload.model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    torch.manual_seed(1)
    batch = workload.batch()
    update = 0
    while True:
        optimizer.zero_grad()
        loss = workload.loss(model, batch)
        loss.backward()
        optimizer.step()
        if after_update is not None:
            after_update(model, update)
        update += 1
        yield


def bare(workload: Any) -> tuple[AbstractContextManager[object], Iterator[None]]:
    return nullcontext(), train(workload)


def watched(workload: Any) -> tuple[AbstractContextManager[object], Iterator[None]]:
    from gradclinic.runtime import Recording

    return Recording(own=[__file__], capacity=TAPE), train(workload)


def histograms(workload: Any) -> tuple[AbstractContextManager[object], Iterator[None]]:
    from tempfile import mkdtemp

    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(mkdtemp())

    def write(model: nn.Module, update: int) -> None:
        for name, parameter in model.named_parameters():
            writer.add_histogram(name, parameter, update)
            writer.add_histogram(f"{name}.grad", parameter.grad, update)

    return nullcontext(), train(workload, write)


CONTESTANTS = {"bare": bare, "gradclinic run": watched}
if find_spec("tensorboard") is not None:
    CONTESTANTS["TensorBoard histograms"] = histograms


def turns(contestant: str, position: int, pipe: Connection) -> None:
    """In a process of its own: ten updates for each word from the parent, answered by their CPU time."""
    torch.set_num_threads(1)
    context, run = CONTESTANTS[contestant](WORKLOADS[position])
    with context:
        for _ in range(WARM_UP * UPDATES):
            next(run)
        pipe.send(0.0)
        while pipe.recv():
            began = time.process_time()
            for _ in range(UPDATES):
                next(run)
            pipe.send(time.process_time() - began)


def measured(position: int, rounds: int) -> dict[str, list[float]]:
    start = multiprocessing.get_context("spawn")
    pipes: dict[str, Connection] = {}
    for name in CONTESTANTS:
        mine, theirs = start.Pipe()
        start.Process(target=turns, args=(name, position, theirs), daemon=True).start()
        pipes[name] = mine
    for pipe in pipes.values():
        pipe.recv()
    times: dict[str, list[float]] = {name: [] for name in pipes}
    names = list(pipes)
    for turn in range(rounds):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            pipes[name].send(True)
            times[name].append(pipes[name].recv())
    for pipe in pipes.values():
        pipe.send(False)
    return times


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rounds", type=int, default=20)
    arguments.add_argument("workloads", nargs="*", default=[one.name for one in WORKLOADS])
    given = arguments.parse_args()
    others = [name for name in CONTESTANTS if name != "bare"]
    print("| workload | bare, ms an update | " + " | ".join(others) + " |")
    print("|---|---|" + "---|" * len(others))
    for position, workload in enumerate(WORKLOADS):
        if workload.name not in given.workloads:
            continue
        times = measured(position, given.rounds)
        cells = []
        for name in others:
            extra = [own / plain - 1 for own, plain in zip(times[name], times["bare"], strict=True)]
            cells.append(f"{100 * statistics.median(extra):+.1f} %")
        plain = 1000 * statistics.median(times["bare"]) / UPDATES
        print(f"| {workload.name} {workload.title} | {plain:.1f} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
