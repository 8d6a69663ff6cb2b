"""A trainable parameter receives gradients, and no optimizer holds it.

## What it finds
Parameters of a model in train mode that backward fills with gradients step after step, that no
optimizer holds and nothing else updates.

## Why it hurts
Every step computes their gradient and throws it away. That part of the model stays random.

## What to do
Give the optimizer all of them: `itertools.chain(encoder.parameters(), decoder.parameters())`, or
one module that contains both; `optimizer.add_param_group` for what is made later. Learnable
parameters of the loss count too.

## Not the fix
`requires_grad_(False)` to silence it, unless they were meant to stay.

## Known limits
Weights that were loaded, and modules whose name says that they are a target, a teacher or fixed, are
taken to be kept on purpose and reported as advice: freezing them saves the time of their gradients.
Copies made with `deepcopy` are not judged, nor large parameters that no module registers.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import Census, Parameter, Source
from gradclinic.findings import Finding, Severity
from gradclinic.rules._naming import listed, modules_of
from gradclinic.rules._owners import orphans, stale
from gradclinic.rules._rule import Rule

rule = Rule(
    "GC301",
    "parameter-not-in-optimizer",
    Severity.ERROR,
    since="0.1.0",
    sources=(Source.RUNTIME,),
    topic="what the optimizers hold",
    explains=("GC612", "GC306", "GC706"),
)

BAD = """
import torch
from torch import nn

torch.manual_seed(0)
encoder = nn.Sequential(nn.Linear(4, 2), nn.Tanh())
decoder = nn.Linear(2, 4)
optimizer = torch.optim.SGD(encoder.parameters(), lr=0.05)
for step in range(20):
    x = torch.randn(32, 4)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(decoder(encoder(x)), x)
    loss.backward()
    optimizer.step()
"""

GOOD = """
import torch
from torch import nn

torch.manual_seed(0)
encoder = nn.Sequential(nn.Linear(4, 2), nn.Tanh())
decoder = nn.Linear(2, 4)
optimizer = torch.optim.SGD([*encoder.parameters(), *decoder.parameters()], lr=0.05)
for step in range(20):
    x = torch.randn(32, 4)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(decoder(encoder(x)), x)
    loss.backward()
    optimizer.step()
"""

GOOD_FROZEN_BACKBONE = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
for parameter in model[0].parameters():
    parameter.requires_grad = False
optimizer = torch.optim.SGD(model[2].parameters(), lr=0.05)
for step in range(20):
    x = torch.randn(32, 4)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
"""

GOOD_PERTURBED_INPUT = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.Adam(model.parameters())
for step in range(12):
    x = torch.randn(8, 4)
    y = x.sum(1, keepdim=True)
    perturbed = nn.Parameter(x.clone())
    nn.functional.mse_loss(model(perturbed), y).backward()
    optimizer.zero_grad()
    attacked = perturbed.detach() + 0.01 * perturbed.grad.sign()
    nn.functional.mse_loss(model(attacked), y).backward()
    optimizer.step()
"""

GOOD_ADVERSARIES = """
import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits as bce

torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 4))
critic = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
for_generator = torch.optim.Adam(generator.parameters(), lr=1e-3)
for_critic = torch.optim.Adam(critic.parameters(), lr=1e-3)
for step in range(20):
    real, fake = torch.randn(32, 4), generator(torch.randn(32, 2))
    for_critic.zero_grad()
    apart = bce(critic(real), torch.ones(32, 1)) + bce(critic(fake.detach()), torch.zeros(32, 1))
    apart.backward()
    for_critic.step()
    for_generator.zero_grad()
    fooled = bce(critic(fake), torch.ones(32, 1))
    fooled.backward()
    for_generator.step()
"""


KEPT = frozenset(
    {"target", "teacher", "frozen", "fixed", "random", "reference", "ref", "vgg", "perceptual", "extractor"}
)


@rule.check
def gradient_thrown_away(census: Census) -> Iterator[Finding]:
    if census.hand_written or stale(census) or not census.holders:
        return
    found = [p for p in orphans(census) if p.built is not None]
    for kept in (False, True):
        group = [p for p in found if _on_purpose(p) is kept]
        if not group:
            continue
        holder = census.holders[0]
        yield rule.finding(
            f"{listed(modules_of(group), most=3)}: gradients arrive, and no optimizer holds the parameters",
            holder.built,
            evidence={"held by no optimizer": listed(p.name for p in group), "steps": group[0].updates},
            fix="freeze them with requires_grad_(False) to save their gradients"
            if kept
            else f"give them to {holder.name}, or to an optimizer of their own",
            confidence=0.6 if kept else 0.93,
            severity=Severity.INFO if kept else None,
            subject=group[0].name,
        )


def _on_purpose(p: Parameter) -> bool:
    words = p.name.lower().replace(".", "_").split("_")
    return p.loaded or not KEPT.isdisjoint(words)
