"""One parameter is updated twice with one gradient.

## What it finds
A parameter that a group lists more than once, or that two optimizers hold and step one after the
other without a backward in between.

## Why it hurts
It moves twice per update: twice the learning rate for some layers, two momenta that disagree, a
decay applied twice.

## What to do
Make the list unique, and give each parameter to one optimizer. Tied weights appear once in
`model.parameters()`, but twice in the sum of two modules' lists.

## Not the fix
Halving the learning rate.

## Known limits
Two optimizers over the same parameters that take turns, each after a backward of its own, are a
known pattern and not reported.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import Census, Source
from gradclinic.findings import Finding, Severity
from gradclinic.rules._naming import counted
from gradclinic.rules._rule import Rule

rule = Rule(
    "GC310",
    "duplicate-parameter",
    Severity.ERROR,
    since="0.1.0",
    sources=(Source.RUNTIME,),
    topic="what the optimizers hold",
    explains=("GC307", "GC606"),
    subsumes=("GC105",),
)

BAD = """
import torch
from torch import nn

torch.manual_seed(0)
body, head = nn.Linear(4, 8), nn.Linear(8, 1)
for_all = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.02)
for_head = torch.optim.SGD(head.parameters(), lr=0.02)
for step in range(20):
    x = torch.randn(32, 4)
    for_all.zero_grad()
    for_head.zero_grad()
    loss = nn.functional.mse_loss(head(torch.relu(body(x))), x.sum(1, keepdim=True))
    loss.backward()
    for_all.step()
    for_head.step()
"""

GOOD = """
import torch
from torch import nn

torch.manual_seed(0)
body, head = nn.Linear(4, 8), nn.Linear(8, 1)
for_body = torch.optim.SGD(body.parameters(), lr=0.02)
for_head = torch.optim.SGD(head.parameters(), lr=0.02)
for step in range(20):
    x = torch.randn(32, 4)
    for_body.zero_grad()
    for_head.zero_grad()
    loss = nn.functional.mse_loss(head(torch.relu(body(x))), x.sum(1, keepdim=True))
    loss.backward()
    for_body.step()
    for_head.step()
"""

GOOD_TAKING_TURNS = """
import torch
from torch import nn

torch.manual_seed(0)
encoder, decoder, critic = nn.Linear(4, 2), nn.Linear(2, 4), nn.Linear(2, 1)
rebuild = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-3)
regularise = torch.optim.Adam(encoder.parameters(), lr=1e-4)
judge = torch.optim.Adam(critic.parameters(), lr=1e-3)
bce = nn.functional.binary_cross_entropy_with_logits
for step in range(20):
    x = torch.randn(32, 4)
    rebuild.zero_grad()
    nn.functional.mse_loss(decoder(encoder(x)), x).backward()
    rebuild.step()
    judge.zero_grad()
    code = encoder(x).detach()
    (bce(critic(torch.randn(32, 2)), torch.ones(32, 1)) + bce(critic(code), torch.zeros(32, 1))).backward()
    judge.step()
    regularise.zero_grad()
    bce(critic(encoder(x)), torch.ones(32, 1)).backward()
    regularise.step()
"""


@rule.check
def moved_twice(census: Census) -> Iterator[Finding]:
    for holder in census.holders:
        twice = sum(group.duplicates for group in holder.groups)
        if twice:
            yield rule.finding(
                f"{holder.name} lists {counted(twice, 'parameter')} twice in one group",
                holder.built,
                evidence={"listed": sum(len(g.parameters) for g in holder.groups), "listed twice": twice},
                fix="remove the duplicates: list(dict.fromkeys(parameters))",
                confidence=0.97,
                subject=holder.id,
            )
    for first, second, shared in census.stepped_twice:
        one, other = census.by_id.get(first), census.by_id.get(second)
        if one is None or other is None:
            continue
        yield rule.finding(
            f"{one.name} and {other.name} both step {counted(shared, 'parameter')} with the same gradient",
            other.built,
            evidence={"held by both": counted(shared, "parameter")},
            fix="give every parameter to one optimizer",
            confidence=0.95,
            subject=second,
        )
