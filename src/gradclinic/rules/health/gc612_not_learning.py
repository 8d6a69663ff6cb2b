"""The loss has not moved beyond its noise.

## What it finds
A run of at least fifty updates whose loss at the end is that of the beginning, within the spread
between neighbouring updates. A loss that is the same number from the first update to the last is a
warning by itself; one that only wanders is mentioned, and shown under its cause when one was found.

Under `probe overfit`: a model that cannot learn even one fixed batch by heart, with dropout and weight
decay off.

## Why it hurts
Time passes and nothing is learned.

## What to do
Look at the cause named above this finding. Without one, overfit a single batch
(`gradclinic probe overfit`): if even that does not reach a loss near zero, the fault is in the model or
the loss; if it does, look at the data and the learning rate.

## Not the fix
Training longer.

## Known limits
Games of several optimizers, and losses that change sign such as a policy's, are not judged: their
value says little about what was learned.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts.fitting import Fit, Overfit
from gradclinic.facts.source import Source
from gradclinic.facts.training import Training
from gradclinic.findings import Finding, Kind, Severity
from gradclinic.rules._rule import Rule
from gradclinic.rules.health._instability import explosion
from gradclinic.rules.health._progress import Verdict, progress, warming_up

rule = Rule(
    "GC612",
    "not-learning",
    Severity.WARNING,
    since="0.1.0",
    sources=(Source.RUNTIME, Source.PROBE),
    topic="progress of the loss",
    kind=Kind.SYMPTOM,
)

BAD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(100):
    x = torch.randn(64, 4)
    labels = torch.randint(0, 3, (64,))
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), labels)
    loss.backward()
    optimizer.step()
"""

BAD_CASE = """
import torch
from torch import nn

from gradclinic import Case


def make():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 3))
    batch = torch.ones(24, 4), torch.arange(24) % 3
    return Case(model, batch, lambda out, batch: nn.functional.cross_entropy(out, batch[1]))
"""

GOOD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
x = torch.randn(64, 4)
for step in range(60):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x[:, :3])
    loss.backward()
    optimizer.step()
"""

GOOD_CASE = """
import torch
from torch import nn

from gradclinic import Case


def make():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 3))
    batch = torch.randn(24, 4), torch.arange(24) % 3
    return Case(
        model,
        batch,
        lambda out, batch: nn.functional.cross_entropy(out, batch[1]),
        optimizer=lambda params: torch.optim.Adam(params, lr=1e-2),
    )
"""

FEWEST = 50
FROZEN = 1e-7


@rule.check
def loss_stands_still(training: Training) -> Iterator[Finding]:
    outcome = progress(training)
    if outcome.verdict is not Verdict.FLAT or outcome.updates < FEWEST:
        return
    if not training.alone or training.breakdown is not None or warming_up(training):
        return
    if explosion(training) is not None:
        return
    losses = [loss for _, loss in training.losses]
    spread = max(losses) - min(losses)
    frozen = spread <= FROZEN * abs(outcome.first) and outcome.first != 0
    if frozen:
        message = f"the loss is {outcome.first:.6g} at every one of {outcome.updates} updates"
    elif outcome.first - outcome.last > 3 * outcome.noise:
        message = "the loss fell a little at first and has not moved beyond its noise since"
    else:
        message = "the loss has not moved beyond its noise"
    yield rule.finding(
        message,
        training.backward,
        evidence={"loss": outcome.story, "between neighbours": f"{outcome.noise:.2g}"},
        fix="overfit one batch (gradclinic probe overfit) to tell a fault of the model from one of the data",
        confidence=0.9 if frozen else 0.5,
        severity=Severity.WARNING if frozen else Severity.INFO,
        subject=training.optimizer.id,
    )


@rule.check
def cannot_fit_one_batch(overfit: Overfit) -> Iterator[Finding]:
    own = overfit.own
    if own.fit not in (Fit.STUCK, Fit.DIVERGES):
        return
    tried = ", ".join(f"{a.last:.3g} at rate {a.rate:.2g}" for a in overfit.retries)
    floor = "unknown" if own.floor is None else f"{own.floor:.3g}"
    yield rule.finding(
        f"the model cannot learn one batch: loss {own.first:.4g} to {own.last:.4g} in {own.steps} steps",
        overfit.where,
        evidence={
            "its least value": floor,
            "with": f"{own.optimizer}, learning rate {own.rate:.2g}",
            **({"other rates ended at": tried} if tried else {}),
        },
        fix="look for the cause first: gradclinic probe flow, init, batch, lr",
        confidence=0.9,
    )
