"""A differentiable path goes through NumPy and comes back without its gradient.

## What it finds
A value that carries a graph is taken to NumPy, worked on there, and comes back as a tensor that
becomes the objective or the only way from some parameters to it.

## Why it hurts
NumPy knows no gradients: everything before the round trip stops learning.

## What to do
Write that part in torch; nearly every NumPy function has a namesake. For a function that exists
only in NumPy or SciPy, write a `torch.autograd.Function` with its own backward.

## Not the fix
`requires_grad_()` on what comes back: it is a new leaf.

## Known limits
Values that go to NumPy for a target, such as advantages in reinforcement learning, are left alone
as long as the parameters behind them are reached by another way.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import Cut, CutKind, CutRole, Source
from gradclinic.findings import Finding, Severity
from gradclinic.rules._rule import Rule
from gradclinic.rules.graph._cuts import cut_seen

rule = Rule(
    "GC204",
    "numpy-roundtrip",
    Severity.ERROR,
    since="0.1.0",
    sources=(Source.STATIC, Source.RUNTIME),
    topic="the path of the gradient",
    explains=("GC612",),
    subsumes=("GC104", "GC105"),
)

BAD = """
import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
encoder, head = nn.Linear(4, 8), nn.Linear(8, 1)
optimizer = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.05)
for step in range(20):
    x = torch.randn(32, 4)
    optimizer.zero_grad()
    hidden = encoder(x)
    hidden = torch.from_numpy(np.tanh(hidden.detach().numpy()))
    loss = nn.functional.mse_loss(head(hidden), x.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
"""

GOOD = """
import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
policy, value = nn.Linear(4, 3), nn.Linear(4, 1)
optimizer = torch.optim.SGD([*policy.parameters(), *value.parameters()], lr=0.05)
for step in range(20):
    state = torch.randn(32, 4)
    choice = torch.distributions.Categorical(logits=policy(state))
    action = choice.sample()
    reward = (action == state[:, :3].argmax(1)).float()
    estimate = value(state).squeeze(-1)
    advantage = reward.numpy() - estimate.detach().numpy()
    advantage = torch.from_numpy((advantage - np.mean(advantage)) / (np.std(advantage) + 1e-6))
    optimizer.zero_grad()
    loss = -(choice.log_prob(action) * advantage).mean() + nn.functional.mse_loss(estimate, reward)
    loss.backward()
    optimizer.step()
"""


@rule.check
def lost_in_numpy(cut: Cut) -> Iterator[Finding]:
    if cut.kind is not CutKind.NUMPY or (cut.role is CutRole.TERM and not cut.parameters):
        return
    yield rule.finding(
        "a value on the way to the loss goes through NumPy and comes back without a gradient",
        cut.where,
        evidence=cut_seen(cut),
        fix="do this part in torch",
        confidence=0.93,
    )
