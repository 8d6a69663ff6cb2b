"""The objective runs the wrong way: a loss is maximised.

## What it finds
An objective that is the negative of a loss which cannot be negative (cross-entropy, a squared error),
or an optimizer built with `maximize=True` over such a loss, whose loss grows and grows; an objective
that runs away below any bound, ten-thousand times its first size, with gradients that do not fade, or
that falls far below zero as fast at the end as ever; or log-probabilities of a policy times what they
earned, minimised as they are.

## Why it hurts
The model learns to be as wrong as possible. The number that is printed may fall nicely.

## What to do
Take the minus sign away, or `maximize=True`. To maximise a reward or a likelihood, negate that one, and
keep it bounded.

## Not the fix
Clamping the objective: its gradient is then zero and nothing is learned at all.

## Known limits
Games of several optimizers, where one side may maximise what the other minimises, are not judged, nor is
an optimizer over inputs rather than the parameters of a module. The objective of a policy is known by
the names in it: log-probabilities or a ratio, times a reward, return or advantage.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import isfinite
from statistics import median

from gradclinic.facts.policy import PolicyTerm
from gradclinic.facts.source import Source
from gradclinic.facts.training import Training
from gradclinic.findings import Finding, Severity
from gradclinic.rules._rule import Rule
from gradclinic.rules.health._progress import warming_up

rule = Rule(
    "GC413",
    "objective-wrong-way",
    Severity.WARNING,
    since="0.1.0",
    sources=(Source.RUNTIME,),
    topic="direction of the objective",
    explains=("GC601", "GC603", "GC506", "GC507", "GC508", "GC307"),
)

BAD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(80):
    x = torch.randn(32, 4)
    optimizer.zero_grad()
    loss = -nn.functional.cross_entropy(model(x), x[:, :3].argmax(1))
    loss.backward()
    optimizer.step()
"""

BAD_POLICY = """
import torch
from torch import nn

torch.manual_seed(0)
policy = nn.Linear(4, 3)
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
for step in range(30):
    state = torch.randn(32, 4)
    choice = torch.distributions.Categorical(logits=policy(state))
    action = choice.sample()
    rewards = (action == state[:, :3].argmax(1)).float()
    log_probs = choice.log_prob(action)
    loss = (log_probs * (rewards - rewards.mean())).mean() - 0.01 * choice.entropy().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""

GOOD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(80):
    x = torch.randn(32, 4)
    optimizer.zero_grad()
    chosen = model(x).log_softmax(1).gather(1, x[:, :3].argmax(1, keepdim=True))
    loss = -chosen.mean()
    loss.backward()
    optimizer.step()
"""

GOOD_LIKELIHOOD_OF_A_DENSITY = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(2, 2)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(200):
    x = torch.randn(64, 2)
    optimizer.zero_grad()
    mean, scale = model(x).chunk(2, -1)
    density = torch.distributions.Normal(mean, nn.functional.softplus(scale) + 1e-3)
    loss = -density.log_prob(x[:, :1]).mean()
    loss.backward()
    optimizer.step()
"""

FEWEST = 15
GROWN = 2.0
RUNAWAY = 1e4
LONG, DEEP, STEADY = 200, 10.0, 0.7
"""Updates after which a fall to minus ten times the beginning should have slowed down, but goes on at
seven tenths of its fastest."""


ENOUGH_SEEN = 3


@rule.check
def reward_is_minimised(term: PolicyTerm) -> Iterator[Finding]:
    if term.sign < 0 or term.seen < ENOUGH_SEEN:
        return
    yield rule.finding(
        f"{term.product} is minimised: actions that earn more become less likely",
        term.where,
        evidence={"enters the objective": f"with a plus, {term.seen} times"},
        fix=f"negate it: -({term.product})",
        confidence=0.88,
    )


@rule.check
def objective_is_maximised(training: Training) -> Iterator[Finding]:
    losses = [loss for _, loss in training.losses]
    owned = any(tensor.role for tensor in training.tensors)
    if len(losses) < FEWEST or not training.alone or not owned:
        return
    first, last = median(losses[:3]), median(losses[-3:])
    upward = training.sense * (-1 if training.climbs else 1) < 0
    if upward and abs(last) > GROWN * abs(first) and abs(first) > 0:
        what = "maximize=True climbs a loss" if training.climbs else "the negative of a loss is minimised"
        confidence = 0.95
    elif training.sense == 0 and (_runs_away(training, first, last) or _never_slows(training, first, last)):
        what, confidence = "the objective falls without bound", 0.7
    else:
        return
    yield rule.finding(
        f"{what}: the objective went from {first:.4g} to {last:.4g} and has no bottom",
        training.backward,
        evidence={
            "objective": f"{first:.4g} at first, {last:.4g} after {training.taken} updates",
            "gradient norm": f"{training.taken_steps[0].norm:.3g} at first, "
            f"{training.taken_steps[-1].norm:.3g} at the end",
        },
        fix="minimise the loss itself: take the minus sign, or maximize=True, away",
        confidence=confidence,
        subject=training.optimizer.id,
    )


def _runs_away(training: Training, first: float, last: float) -> bool:
    norms = [step.norm for step in training.taken_steps if isfinite(step.norm)]
    fades = median(norms[-3:]) < median(norms[:3])
    return last < -RUNAWAY * max(1.0, abs(first)) and not fades


def _never_slows(training: Training, first: float, last: float) -> bool:
    """A likelihood flattens out as it nears that of the data; with a wrong sign in it, it never does.

    What is earned may grow as steadily and is meant to: such an objective begins at zero or below.
    """
    end = training.losses[-1][0]
    if end < LONG or first <= 0 or warming_up(training):
        return False
    if last > -DEEP * max(1.0, first):
        return False
    fifths = [
        [loss for index, loss in training.losses if part * end <= 5 * index <= (part + 1) * end]
        for part in range(5)
    ]
    if not all(fifths):
        return False
    falls = [before - after for before, after in pairwise(map(median, fifths))]
    return min(falls) > 0 and falls[-1] >= STEADY * max(falls)
