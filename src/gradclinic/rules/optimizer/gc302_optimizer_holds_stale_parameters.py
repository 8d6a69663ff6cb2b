"""The optimizer holds tensors that the model no longer uses.

## What it finds
An optimizer that was built before a layer was replaced, before the model was rebuilt, copied or
wrapped in something that makes new parameters: it steps tensors that belong to no model that runs,
while the parameters that replaced them receive gradients and belong to no optimizer.

## Why it hurts
The new parameters never move. Nothing fails and nothing is printed; the replaced part stays at its
initial values.

## What to do
Build the optimizer last, after every replacement, conversion and wrapping, or add the new
parameters with `optimizer.add_param_group`.

## Not the fix
Raising the learning rate of a part that is not being updated.

## Known limits
`model.to(...)` keeps the parameters it converts, so an optimizer built before it stays valid on
current versions of torch.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import Actor, Census, Event, EventKind, Source, Tape
from gradclinic.findings import Finding, Severity
from gradclinic.rules._naming import counted, listed
from gradclinic.rules._owners import stale
from gradclinic.rules._rule import Rule

rule = Rule(
    "GC302",
    "optimizer-holds-stale-parameters",
    Severity.ERROR,
    since="0.1.0",
    sources=(Source.STATIC, Source.RUNTIME),
    topic="what the optimizers hold",
    explains=("GC612", "GC306"),
    subsumes=("GC104", "GC105"),
)

BAD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
model[2] = nn.Linear(8, 1)
for step in range(20):
    x = torch.randn(32, 4)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
"""

BAD_REBUILT = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
model = nn.Linear(4, 1)
for step in range(20):
    x = torch.randn(32, 4)
    model.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
"""

GOOD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 10))
model[2] = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(20):
    x = torch.randn(32, 4)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
"""


@rule.check
def built_too_early(census: Census) -> Iterator[Finding]:
    old = stale(census)
    new = [p for p in census.parameters if p.trainable and p.reached and p.registered and not p.holders]
    if census.hand_written or not new:
        return
    for holder in census.holders:
        held = [p for p in old if holder.id in p.holders]
        if not held:
            continue
        yield rule.finding(
            f"{holder.name} holds {counted(len(held), 'tensor')} that no model uses any more; "
            f"{listed((p.name for p in new), most=2)} is updated by nobody",
            holder.built,
            evidence={
                "held, in no model that runs": listed(str(p.shape) for p in held),
                "given gradients, in no optimizer": listed(p.name for p in new),
            },
            fix=f"build {holder.name} after the model has its final layers",
            confidence=0.95,
            subject=holder.id,
        )


@rule.check
def replaced_behind_its_back(tape: Tape) -> Iterator[Finding]:
    for event in tape.of_kind(EventKind.REPLACE):
        new = event.attrs.get("keys")
        if not new or any(tape.actors[id].acts_on_any_of(new) for id in tape.optimizers):
            continue
        for optimizer in tape.optimizers:
            actor = tape.actors[optimizer]
            if actor.acts_on_all_of(event.attrs["old"]) and _goes_on(tape, actor, event):
                part = event.attrs["part"]
                yield rule.finding(
                    f"{part} is replaced after {actor.name} was built: nobody updates the new parameters",
                    event,
                    evidence={"optimizer built": str(actor.built)},
                    fix=f"build {actor.name} after {part} has its final form, or add the new parameters "
                    "to it with add_param_group",
                    confidence=0.9,
                    subject=optimizer,
                )


def _goes_on(tape: Tape, optimizer: Actor, event: Event) -> bool:
    """Whether it was built before, and trains after, with nothing between that could have told it."""
    built = next(tape.of_actor(optimizer.id, EventKind.BUILD), None)
    if built is None or built.index > event.index:
        return False
    after = tape.events[event.index + 1 :]
    return (
        any(e.kind is EventKind.STEP and e.actor == optimizer.id for e in after)
        and any(e.kind is EventKind.BACKWARD for e in after)
        and not any(e.kind is EventKind.OPAQUE and e.concerns(optimizer.id) for e in after)
    )
