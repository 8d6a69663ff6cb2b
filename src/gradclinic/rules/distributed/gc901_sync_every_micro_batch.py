"""Ranks exchange their gradients after every micro-batch of an accumulation window.

## What it finds
An accumulation window under `DistributedDataParallel` or `fully_shard` in which each backward
averages the gradients over the ranks, where only the last one has to.

## Why it hurts
The sum over the window is the same, and the network carries it K times instead of once. On several
machines the exchange is often what a step waits for.

## What to do
Leave the exchange to the last micro-batch. With DDP, forward and backward both inside `no_sync()`:

    last = (i + 1) % accumulate == 0
    with contextlib.nullcontext() if last else model.no_sync():
        loss = criterion(model(x), y) / accumulate
        loss.backward()

With `fully_shard`, `model.set_requires_gradient_sync(last)` before the forward.

## Not the fix
`no_sync()` around the backward alone: the forward has already arranged the exchange, so nothing
is saved. And `no_sync()` around the whole window: then no gradient is ever exchanged.

## Known limits
A note, not a warning, in source, where the number of ranks is not known, on a single rank, and for
sharded models, where waiting keeps the gradients of the whole model in memory and may not be worth it.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import ACCUMULATION, DISTRIBUTED, Actor, EventKind, Source, Tape, Update, updates
from gradclinic.findings import Finding, Severity
from gradclinic.rules._rule import Rule

rule = Rule(
    "GC901",
    "sync-every-micro-batch",
    Severity.WARNING,
    since="0.1.0",
    sources=(Source.STATIC, Source.RUNTIME),
    topic=DISTRIBUTED,
    needs=(DISTRIBUTED, ACCUMULATION),
)

BAD = """
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
x = torch.randn(64, 4)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=4)
model = DistributedDataParallel(nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
accumulate = 4
for epoch in range(2):
    for i, (inputs, targets) in enumerate(loader):
        loss = nn.functional.mse_loss(model(inputs), targets) / accumulate
        loss.backward()
        if (i + 1) % accumulate == 0 or i + 1 == len(loader):
            optimizer.step()
            optimizer.zero_grad()
dist.barrier()
dist.destroy_process_group()
"""

BAD_CONTEXT_AROUND_BACKWARD_ONLY = """
import contextlib

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
x = torch.randn(64, 4)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=4)
model = DistributedDataParallel(nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
accumulate = 4
for epoch in range(2):
    for i, (inputs, targets) in enumerate(loader):
        last = (i + 1) % accumulate == 0 or i + 1 == len(loader)
        loss = nn.functional.mse_loss(model(inputs), targets) / accumulate
        with contextlib.nullcontext() if last else model.no_sync():
            loss.backward()
        if last:
            optimizer.step()
            optimizer.zero_grad()
dist.barrier()
dist.destroy_process_group()
"""

GOOD = """
import contextlib

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
x = torch.randn(64, 4)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=4)
model = DistributedDataParallel(nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
accumulate = 4
for epoch in range(2):
    for i, (inputs, targets) in enumerate(loader):
        last = (i + 1) % accumulate == 0 or i + 1 == len(loader)
        with contextlib.nullcontext() if last else model.no_sync():
            loss = nn.functional.mse_loss(model(inputs), targets) / accumulate
            loss.backward()
        if last:
            optimizer.step()
            optimizer.zero_grad()
dist.barrier()
dist.destroy_process_group()
"""


@rule.check
def exchanged_each_time(tape: Tape) -> Iterator[Finding]:
    for optimizer in tape.optimizers:
        windows = [update for update in updates(tape, optimizer) if _exchanges_each_time(update)]
        if len(windows) < 2:
            continue
        backwards = windows[0].micro_batches()
        model = tape.actors.get(backwards[0].attrs["reduces"])
        length = len(backwards) if tape.source is Source.RUNTIME else "K"
        yield rule.finding(
            f"the ranks exchange gradients {length} times for one {tape.name(optimizer)}.step(), "
            "and only the last time is needed",
            backwards[0],
            evidence=_saved(model, len(backwards), tape.count(EventKind.STEP, optimizer))
            if tape.source is Source.RUNTIME
            else None,
            fix="put forward and backward of all micro-batches but the last under no_sync()"
            if model is None or not model.attrs.get("sharded")
            else "call set_requires_gradient_sync(False) for all micro-batches but the last",
            severity=None if model is not None and _matters(model) else Severity.INFO,
            subject=optimizer,
        )


def _exchanges_each_time(update: Update) -> bool:
    models = {event.attrs.get("reduces") for event in update.micro_batches()}
    return len(models) == 1 and None not in models


def _matters(model: Actor) -> bool:
    return model.attrs.get("ranks", 2) > 1 and not model.attrs.get("sharded")


def _saved(model: Actor | None, length: int, steps: int) -> dict[str, str]:
    size = model.attrs.get("gradient_bytes") if model is not None else None
    if not size:
        return {}
    return {
        "each exchange": f"{_amount(size)} per rank",
        "deferring saves": f"{_amount(size * (length - 1))} per update, "
        f"{_amount(size * (length - 1) * steps)} in the {steps} of this run",
    }


def _amount(size: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"
