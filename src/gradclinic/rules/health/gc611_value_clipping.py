"""Gradients are clipped value by value, which bends their direction.

## What it finds
`clip_grad_value_`, or `p.grad.clamp_`: each entry is limited by itself. A run is told how much of the
direction that costs, as the cosine between the gradient before and after.

## Why it hurts
Large entries are cut and small ones stay, so the step no longer goes where the gradient points. With a
limit far below the usual entries only the signs are left. Clipping by the norm shortens the gradient
and keeps its direction.

## What to do
`torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)`, unless a recipe asks for values.

## Not the fix
A very large limit, which then never acts.

## Known limits
Some recipes, in reinforcement learning for one, are tuned with value clipping. It is a note only, and
a run in which the direction was hardly bent says nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import EventKind, Source, Tape, cadence
from gradclinic.findings import Finding, Severity
from gradclinic.rules._rule import Rule

rule = Rule(
    "GC611",
    "value-clipping",
    Severity.INFO,
    since="0.1.0",
    sources=(Source.STATIC, Source.RUNTIME),
    topic="clipping",
    needs=(EventKind.CLIP,),
)

BAD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
for step in range(20):
    x = torch.randn(32, 4) * torch.tensor([10.0, 1.0, 1.0, 0.1])
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    nn.utils.clip_grad_value_(model.parameters(), 0.5)
    optimizer.step()
"""

GOOD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
for step in range(20):
    x = torch.randn(32, 4)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
"""

BENT = 0.99
"""A cosine above this is a step in the same direction."""


@rule.check
def bent_by_its_values(tape: Tape) -> Iterator[Finding]:
    clips = [event for event in tape.of_kind(EventKind.CLIP) if event.attrs.get("by_value")]
    for _, at_site in cadence(tuple(clips)):
        cosines = [event.attrs["cosine"] for event in at_site if event.attrs.get("cosine") is not None]
        if cosines and min(cosines) > BENT:
            continue
        measured = {"cosine to the gradient before": f"{min(cosines):.2f} at worst"} if cosines else None
        yield rule.finding(
            "each value of the gradient is clipped by itself, which bends its direction",
            at_site[0].attrs.get("inside", at_site[0].where),
            evidence=measured,
            fix="clip by the norm: torch.nn.utils.clip_grad_norm_",
            confidence=0.9,
        )
