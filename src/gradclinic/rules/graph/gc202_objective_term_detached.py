"""Part of the objective was turned into a number, so only the rest trains.

## What it finds
A sum of losses given to backward of which one summand carries no graph any more: it was taken with
`.item()` or `float()`, detached, or computed with gradients off, although parameters lie behind it.

## Why it hurts
A constant has no gradient. The printed loss contains the term, the training does not.

## What to do
Add the tensor itself, and take the number only for logging:

    loss = task + 0.1 * penalty
    log(penalty.item())

## Not the fix
A larger factor on the term: a constant times anything is a constant.

## Known limits
A term that is meant to be constant, such as a baseline, is known by not being a plain summand of
the objective.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import Cut, CutKind, CutRole, Source
from gradclinic.findings import Finding, Severity
from gradclinic.rules._rule import Rule
from gradclinic.rules.graph._cuts import HOW, cut_seen

rule = Rule(
    "GC202",
    "objective-term-detached",
    Severity.ERROR,
    since="0.1.0",
    sources=(Source.STATIC, Source.RUNTIME),
    topic="the path of the gradient",
)

BAD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(20):
    x = torch.randn(32, 4)
    optimizer.zero_grad()
    fit = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    size = sum(p.pow(2).sum() for p in model.parameters())
    loss = fit + 0.1 * size.item()
    loss.backward()
    optimizer.step()
"""

BAD_DETACHED = """
import torch
from torch import nn

torch.manual_seed(0)
body, policy, value = nn.Linear(4, 8), nn.Linear(8, 3), nn.Linear(8, 1)
optimizer = torch.optim.SGD([*body.parameters(), *policy.parameters(), *value.parameters()], lr=0.05)
for step in range(20):
    x = torch.randn(32, 4)
    hidden = torch.relu(body(x))
    optimizer.zero_grad()
    policy_loss = nn.functional.cross_entropy(policy(hidden), x[:, :3].argmax(1))
    value_loss = nn.functional.mse_loss(value(hidden), x.sum(1, keepdim=True))
    loss = policy_loss + 0.5 * value_loss.detach()
    loss.backward()
    optimizer.step()
"""

GOOD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(20):
    x = torch.randn(32, 4)
    optimizer.zero_grad()
    fit = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    size = sum(p.pow(2).sum() for p in model.parameters())
    loss = fit + 0.1 * size
    print(fit.item(), size.item(), fit.item() + 0.1 * size.item())
    loss.backward()
    optimizer.step()
"""

GOOD_BASELINE = """
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
    advantage = reward - estimate.detach()
    optimizer.zero_grad()
    loss = -(choice.log_prob(action) * advantage).mean() + nn.functional.mse_loss(estimate, reward)
    loss.backward()
    optimizer.step()
"""


@rule.check
def summand_without_graph(cut: Cut) -> Iterator[Finding]:
    if cut.role is not CutRole.TERM or cut.kind in (CutKind.TENSOR, CutKind.NUMPY, CutKind.GRAD):
        return
    if not cut.parameters:
        return
    yield rule.finding(
        f"a term of the objective was {HOW[cut.kind]}: it is in the printed loss and trains nothing",
        cut.where,
        evidence=cut_seen(cut),
        fix="add the tensor itself to the loss; use .item() or detach() only for logging",
        confidence=0.94,
    )
