"""The forward goes through `.module`, around the wrapper that averages gradients over the ranks.

## What it finds
A model under `DistributedDataParallel` that is trained by calling the model inside the wrapper:
`model.module(x)`, or a part of it, in updates without any forward through the wrapper.

## Why it hurts
The wrapper prepares the exchange of gradients in its own forward. Gone around, it exchanges nothing:
every rank trains a model of its own on its share of the data, the copies drift apart, and only the
one that is saved survives. Nothing fails, and each loss goes down.

## What to do
Call the wrapper in training: `model(x)`. To use another method of the model, let its `forward` choose
it, so that the call passes the wrapper.

## Not the fix
Averaging the weights after each epoch: the ranks then train apart for a whole epoch. Nor
`find_unused_parameters=True`, which is never asked, for the wrapper is not called.

## Known limits
Evaluation through `.module`, calls without gradients, and updates that also call the wrapper are as
they should be. Gradients that are averaged by hand are not judged.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import DISTRIBUTED, Event, EventKind, Source, Tape, Update, updates
from gradclinic.findings import Finding, Severity
from gradclinic.rules._rule import Rule
from gradclinic.rules.order._wording import order_seen

rule = Rule(
    "GC903",
    "wrapper-bypassed",
    Severity.ERROR,
    since="0.1.0",
    sources=(Source.STATIC, Source.RUNTIME),
    topic=DISTRIBUTED,
    needs=(DISTRIBUTED, EventKind.FORWARD, EventKind.STEP),
    subsumes=("GC902",),
)

BAD = """
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
model = DistributedDataParallel(nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(20):
    x = torch.randn(8, 4)
    loss = nn.functional.mse_loss(model.module(x), x.sum(1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
dist.barrier()
dist.destroy_process_group()
"""

GOOD = """
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
model = DistributedDataParallel(nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(20):
    x = torch.randn(8, 4)
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
model.eval()
with torch.no_grad():
    print(model.module(torch.randn(1, 4)))
dist.barrier()
dist.destroy_process_group()
"""

GOOD_AVERAGED_BY_HAND = """
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
model = DistributedDataParallel(nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(20):
    x = torch.randn(8, 4)
    loss = nn.functional.mse_loss(model.module(x), x.sum(1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    for p in model.parameters():
        dist.all_reduce(p.grad)
        p.grad /= dist.get_world_size()
    optimizer.step()
dist.barrier()
dist.destroy_process_group()
"""


@rule.check
def gone_around(tape: Tape) -> Iterator[Finding]:
    told: set[str] = set()
    for optimizer in tape.optimizers:
        around = [calls for update in updates(tape, optimizer) if (calls := _only_around(update, tape))]
        if len(around) < 2 or around[0][0].attrs["bypasses"] in told:
            continue
        call = _again(around)
        wrapper = call.attrs["bypasses"]
        told.add(wrapper)
        name = tape.name(wrapper)
        inner = tape.name(call.actor)
        ranks = tape.actors[wrapper].attrs.get("ranks") if wrapper in tape.actors else None
        yield rule.finding(
            f"the forward goes to {inner}, around its wrapper: no gradient is averaged over the ranks",
            call,
            evidence={
                "order seen": order_seen(
                    updates(tape, optimizer)[0].events, EventKind.FORWARD, EventKind.BACKWARD, EventKind.STEP
                ),
                **({"ranks that train apart": ranks} if ranks and ranks > 1 else {}),
            },
            fix=f"call {name}(…) in training; {name}.module is for evaluation and for saving",
            confidence=0.95,
            subject=name,
        )


def _again(around: list[list[Event]]) -> Event:
    """The call that every update makes; the first may have others before it, which prepare the training."""
    sites = {event.where for event in around[1]}
    return next((event for event in around[0] if event.where in sites), around[0][0])


def _only_around(update: Update, tape: Tape) -> list[Event]:
    """Forwards around a wrapper of this optimizer's parameters, if the update has no other over them."""
    if update.opaque or update.of_kind(EventKind.GRAD_WRITE) or not update.backwards:
        return []
    forwards = update.of_kind(EventKind.FORWARD)
    around = [
        event
        for event in forwards
        if event.attrs.get("bypasses") and event.optimizers and update.optimizer in event.optimizers
    ]
    reduced = {event.attrs.get("reduces") for event in update.backwards}
    called = {event.actor for event in forwards}
    return [event for event in around if event.attrs["bypasses"] not in reduced | called]
