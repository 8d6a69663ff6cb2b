"""Copies of one model differ between the ranks that must hold them equal.

## What it finds
A model under `DistributedDataParallel`, or one whose ranks exchange weights and gradients by hand,
whose weights, or the gradients of an update, are not the same on all ranks, and stay different. Also
ranks that begin as equal copies and then never exchange anything.

## Why it hurts
The wrapper averages gradients and takes equal weights for granted; it never compares them. Once
copies differ each rank takes the average of gradients of other models: the training degrades
quietly, evaluation and checkpoints depend on which rank makes them, and no error is ever raised.

## What to do
Do on all ranks what changes weights, or do it before the model is wrapped, when rank 0's weights are
sent to all:

    state = torch.load(path, map_location="cpu")
    model.load_state_dict(state)
    model = DistributedDataParallel(model)

Parameters added after wrapping are not averaged at all: build the model, then wrap it. Learning
rates, clipping and the decision to step must not depend on the rank.

## Not the fix
Broadcasting the weights every now and then: it hides the place where they part, and the optimizer's
state stays different.

## Known limits
Ranks are compared by a few numbers of each tensor, before some of the updates, after the run. Copies
that are averaged by hand every so often, and communication hooks that let copies drift, are not judged.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from gradclinic.facts import DISTRIBUTED, Look, Replica, Replicas, Source
from gradclinic.facts.ranks import Print
from gradclinic.findings import Finding, Severity
from gradclinic.rules._naming import listed
from gradclinic.rules._rule import Rule

rule = Rule(
    "GC902",
    "ranks-diverge",
    Severity.ERROR,
    since="0.1.0",
    sources=(Source.RUNTIME,),
    topic=DISTRIBUTED,
    explains=("GC306", "GC307", "GC603", "GC612"),
)

BAD = """
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def train(rank, rendezvous, pretrained):
    dist.init_process_group("gloo", init_method=rendezvous, rank=rank, world_size=2)
    torch.manual_seed(rank)
    model = DistributedDataParallel(nn.Linear(4, 1))
    if rank == 0:
        model.module.load_state_dict(pretrained)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(10):
        x = torch.randn(8, 4)
        loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    pretrained = nn.Linear(4, 1).state_dict()
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(train, (f"file://{folder}/ranks", pretrained), nprocs=2, start_method="fork")
"""

GOOD = """
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def train(rank, rendezvous, pretrained):
    dist.init_process_group("gloo", init_method=rendezvous, rank=rank, world_size=2)
    torch.manual_seed(rank)
    model = nn.Linear(4, 1)
    model.load_state_dict(pretrained)
    model = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(10):
        x = torch.randn(8, 4)
        loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    pretrained = nn.Linear(4, 1).state_dict()
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(train, (f"file://{folder}/ranks", pretrained), nprocs=2, start_method="fork")
"""

_ENOUGH = 3
_TOLERANCE = 1e-4
"""Equal arithmetic gives equal bits; different devices in one run may differ by rounding."""
_FLOOR = 1e-7


@dataclass(frozen=True)
class _Parting:
    """Two copies before one update."""

    here: Look
    there: Look
    weights: tuple[int, ...]
    gradients: tuple[int, ...]
    """Positions of the parameters in which they differ."""


@rule.check
def copies_differ(replicas: Replicas) -> Iterator[Finding]:
    first, *others = replicas.copies
    for other in others:
        looks = _compared(first, other)
        apart = next((one for one in looks if one.weights or one.gradients), None)
        if apart is None or len(looks) < _ENOUGH:
            continue
        after = [one for one in looks if one.here.update > apart.here.update]
        if not after or not all(one.weights for one in after):
            continue
        if not first.exchanged and not _began_as_copies(looks):
            continue
        yield _finding(first, other, apart)
        return


def _finding(first: Replica, other: Replica, apart: _Parting) -> Finding:
    update = apart.here.update
    what, positions = ("weights", apart.weights) if apart.weights else ("gradients", apart.gradients)
    names = [first.parameters[position] for position in positions]
    here, there = getattr(apart.here, what), getattr(apart.there, what)
    position = max(positions, key=lambda one: _distance(here[one], there[one]))
    fix = "average the gradients of every update over the ranks: forward through the wrapper, no_sync() off"
    if first.by_hand:
        fix = "average every gradient over the ranks between backward() and step(): dist.all_reduce(p.grad)"
    if apart.weights and update == 1:
        when = "before the first update"
        fix = "change the weights on all ranks alike, or before the model is wrapped"
        if first.by_hand:
            fix = "send the weights of rank 0 to all before training: dist.broadcast(p.data, 0)"
    elif apart.weights:
        when = "after the first update" if update == 2 else f"after update {update - 1}"
        fix = "let no rank step, clip or set its learning rate differently"
    else:
        when = "in the first update" if update == 1 else f"in update {update}"
    evidence = {
        what: f"{listed(names)} ({len(names)} of {len(first.parameters)} tensors)",
        "norm": f"of {first.parameters[position]}: {_norm(here[position])} on rank {first.rank}, "
        f"{_norm(there[position])} on rank {other.rank}",
    }
    if apart.here.rates != apart.there.rates:
        evidence["learning rates"] = (
            f"{_rates(apart.here)} on rank {first.rank}, {_rates(apart.there)} on rank {other.rank}"
        )
    return rule.finding(
        f"the {what} of {first.model} differ between ranks {first.rank} and {other.rank} {when}",
        first.built if update == 1 and apart.weights else first.stepped,
        evidence=evidence,
        fix=fix,
        confidence=0.95 if first.exchanged else 0.8,
        severity=None if first.exchanged else Severity.WARNING,
        subject=first.model,
    )


def _began_as_copies(looks: list[_Parting]) -> bool:
    """The ranks of a search train different models, or one with different rates, and exchange nothing."""
    return (
        looks[0].here.update == 1
        and not looks[0].weights
        and all(one.here.rates == one.there.rates for one in looks)
    )


def _compared(first: Replica, other: Replica) -> list[_Parting]:
    theirs = {look.update: look for look in other.looks}
    return [
        _Parting(
            look, there, _different(look.weights, there.weights), _different(look.gradients, there.gradients)
        )
        for look in first.looks
        if (there := theirs.get(look.update)) is not None
    ]


def _different(here: tuple[Print | None, ...], there: tuple[Print | None, ...]) -> tuple[int, ...]:
    return tuple(
        position for position, pair in enumerate(zip(here, there, strict=True)) if _distance(*pair) > 1.0
    )


def _distance(one: Print | None, other: Print | None) -> float:
    """In tolerances. A gradient that only one rank has is no difference: another may not need it."""
    if not one or not other or len(one) != len(other):
        return 0.0
    floor = _FLOOR * max(abs(one[0]), abs(other[0]))
    worst = 0.0
    for x, y in zip(one, other, strict=True):
        if math.isfinite(x) != math.isfinite(y):
            return math.inf
        if math.isfinite(x) and x != y:
            worst = max(worst, abs(x - y) / (_TOLERANCE * max(abs(x), abs(y)) + floor))
    return worst


def _norm(one: Print | None) -> str:
    return f"{one[0]:.6g}" if one else "none"


def _rates(look: Look) -> str:
    return ", ".join(f"{rate:g}" for rate in look.rates)
