"""What watching costs: the bare loop against the same loop under `gradclinic run`, in its steady state.

Each contestant trains in a process of its own, on one thread, and takes turns with the others, ten
updates at a time, so that whatever else the machine does meets all of them. What is compared is the CPU
time of all turns together, so that what is done once in a hundred updates counts too. The clock starts
after the first 220 updates; the tape of the watched run is kept short, so that it is full by then, as it
is after the first thousand updates of a real run.

Where weights happen to lie in memory makes a difference of several per cent between processes. So the watched
run is compared with itself: every other turn it is not watched. The other tools cannot be switched
off like that, and are compared with the bare loop in its own process.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from importlib.util import find_spec
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch
from torch import nn

from benchmarks.workloads import WORKLOADS

UPDATES = 10
"""In a turn. One update in a hundred is measured in more detail, so rounds come in tens."""
WARM_UP = 22
TAPE = 60


def train(
    workload: Any,
    after_update: Callable[[nn.Module, int], object] | None = None,
    model: nn.Module | None = None,
    optimizer: torch.optim.Optimizer | None = None,
) -> Iterator[None]:
    model = model or workload.model()
    optimizer = optimizer or torch.optim.AdamW(model.parameters(), lr=1e-4)
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


@dataclass
class Contestant:
    updates: Iterator[None]
    context: AbstractContextManager[object] = field(default_factory=nullcontext)
    paused: Callable[[], AbstractContextManager[object]] | None = None
    """Makes the loop a bare one for a while, if that can be done."""


def bare(workload: Any) -> Contestant:
    return Contestant(train(workload))


def watched(workload: Any) -> Contestant:
    """With the store, which every run keeps."""
    from tempfile import mkdtemp

    from gradclinic.runtime import Recording
    from gradclinic.store.writer import Store

    recording = Recording(own=[__file__], capacity=TAPE)
    recording.listen(Store(Path(mkdtemp()), {}))
    return Contestant(train(workload), recording, recording.paused)


def histograms(workload: Any) -> Contestant:
    from tempfile import mkdtemp

    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(mkdtemp())

    def write(model: nn.Module, update: int) -> None:
        for name, parameter in model.named_parameters():
            writer.add_histogram(name, parameter, update)
            writer.add_histogram(f"{name}.grad", parameter.grad, update)

    return Contestant(train(workload, write))


def weights_and_biases(workload: Any) -> Contestant:
    """Gradients and weights at each step, as `wandb.watch(model, log="all")` with a frequency of one."""
    from tempfile import mkdtemp

    import wandb

    run = wandb.init(mode="offline", dir=mkdtemp(), settings=wandb.Settings(console="off", silent=True))
    model = workload.model()
    run.watch(model, log="all", log_freq=1)
    return Contestant(train(workload, lambda _, update: run.log({"update": update}), model))


def torcheck(workload: Any) -> Contestant:
    """Its checks of each parameter: that it changes, that it is finite."""
    import torcheck as checks

    model = workload.model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    checks.register(optimizer)
    checks.add_module_changing_check(model, module_name="model")
    checks.add_module_nan_check(model, module_name="model")
    return Contestant(train(workload, model=model, optimizer=optimizer))


CONTESTANTS = {"bare": bare, "gradclinic run": watched}
PEERS = {"tensorboard": histograms, "wandb": weights_and_biases, "torcheck": torcheck}
CONTESTANTS |= {name: peer for name, peer in PEERS.items() if find_spec(name) is not None}


def turns(name: str, position: int, pipe: Connection) -> None:
    """In a process of its own: for each word from the parent the CPU time of ten updates, and of ten bare
    ones where that can be had."""
    torch.set_num_threads(1)
    contestant = CONTESTANTS[name](WORKLOADS[position])
    with contestant.context:
        for _ in range(WARM_UP):
            turn(contestant.updates)
        pipe.send(None)
        while pipe.recv():
            as_it_is, unwatched = turn(contestant.updates), None
            if contestant.paused is not None:
                with contestant.paused():
                    unwatched = turn(contestant.updates)
            pipe.send((as_it_is, unwatched))


def turn(updates: Iterator[None]) -> float:
    began = time.process_time()
    for _ in range(UPDATES):
        next(updates)
    return time.process_time() - began


def measured(position: int, rounds: int) -> dict[str, list[tuple[float, float | None]]]:
    start = multiprocessing.get_context("spawn")
    pipes: dict[str, Connection] = {}
    for name in CONTESTANTS:
        mine, theirs = start.Pipe()
        start.Process(target=turns, args=(name, position, theirs), daemon=True).start()
        pipes[name] = mine
    for pipe in pipes.values():
        pipe.recv()
    times: dict[str, list[tuple[float, float | None]]] = {name: [] for name in pipes}
    names = list(pipes)
    for number in range(rounds):
        for name in names[number % len(names) :] + names[: number % len(names)]:
            pipes[name].send(True)
            times[name].append(pipes[name].recv())
    for pipe in pipes.values():
        pipe.send(False)
    return times


def extra(of: list[tuple[float, float | None]], bare_ones: list[tuple[float, float | None]]) -> str:
    """What a contestant's turns took beyond bare ones, in all, with the standard error of that."""
    pairs = [
        (taken, plain[0] if own is None else own) for (taken, own), plain in zip(of, bare_ones, strict=True)
    ]
    whole = sum(taken for taken, _ in pairs) / sum(plain for _, plain in pairs) - 1
    error = statistics.stdev(taken / plain for taken, plain in pairs) / len(pairs) ** 0.5
    return f"{100 * whole:+.1f} ± {100 * error:.1f} %"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rounds", type=int, default=20)
    arguments.add_argument("--alone", action="store_true", help="without the other tools")
    arguments.add_argument("workloads", nargs="*", default=[one.name for one in WORKLOADS])
    given = arguments.parse_args()
    if given.alone:
        for name in PEERS:
            CONTESTANTS.pop(name, None)
    others = [name for name in CONTESTANTS if name != "bare"]
    print("| workload | bare, ms an update | " + " | ".join(others) + " |")
    print("|---|---|" + "---|" * len(others))
    for position, workload in enumerate(WORKLOADS):
        if workload.name not in given.workloads:
            continue
        times = measured(position, given.rounds)
        cells = [extra(times[name], times["bare"]) for name in others]
        plain = 1000 * sum(taken for taken, _ in times["bare"]) / len(times["bare"]) / UPDATES
        print(f"| {workload.name} {workload.title} | {plain:.1f} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
