"""Updates are too small to get anywhere.

## What it finds
Gradients are there, but each update moves the weights by less than a fifty-thousandth of their size at
its largest, where a thousandth is usual, and the loss does not move. A rate of zero in every update
counts too, as an integer division in a schedule makes it.

Under `probe`: a rate at which the model does not learn one batch by heart while ten times that rate does,
or a rate more than a hundred times below the one that suits the model.

## Why it hurts
At such a pace a change that takes an ordinary run one epoch takes it a hundred. It looks like a model
that cannot learn.

## What to do
Raise the learning rate; the finding suggests the one at which the measured updates would have their
usual size. `gradclinic probe lr` finds a good range by experiment.

## Not the fix
Training longer; a larger model; scaling the loss up, which under Adam changes nothing.

## Known limits
A schedule that is still rising at the end of the observed run is taken for a warm-up. Runs of fewer
than 30 updates are not judged.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from gradclinic.facts.fitting import Fit, Overfit, RateRange
from gradclinic.facts.source import Source
from gradclinic.facts.training import Training
from gradclinic.findings import Finding, Severity
from gradclinic.rules._rule import Rule
from gradclinic.rules.health._advice import learning_rate
from gradclinic.rules.health._progress import Verdict, progress, warming_up

rule = Rule(
    "GC306",
    "learning-rate-too-low",
    Severity.WARNING,
    since="0.1.0",
    sources=(Source.RUNTIME, Source.PROBE),
    topic="learning rate",
    explains=("GC612",),
)

BAD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-7)
for step in range(100):
    x = torch.randn(64, 8)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
"""

BAD_ZERO = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
warm_up = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1, step // 1000))
for step in range(60):
    x = torch.randn(64, 8)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
    warm_up.step()
"""

BAD_CASE = """
import torch
from torch import nn

from gradclinic import Case


def make():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 3))
    batch = torch.randn(16, 4), torch.randint(0, 3, (16,))
    return Case(
        model,
        batch,
        lambda out, batch: nn.functional.cross_entropy(out, batch[1]),
        optimizer=lambda params: torch.optim.Adam(params, lr=1e-5),
    )
"""

GOOD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(100):
    x = torch.randn(64, 8)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
"""

GOOD_WARM_UP = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
warm_up = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=1e-6, total_iters=100_000)
for step in range(60):
    x = torch.randn(64, 8)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
    warm_up.step()
"""

GOOD_CASE = """
import torch
from torch import nn

from gradclinic import Case


def make():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 3))
    batch = torch.randn(16, 4), torch.randint(0, 3, (16,))
    return Case(
        model,
        batch,
        lambda out, batch: nn.functional.cross_entropy(out, batch[1]),
        optimizer=lambda params: torch.optim.Adam(params, lr=1e-2),
    )
"""

FEWEST = 30
FAR_BELOW = 100
CRAWLS = 2e-5
UNMOVED = 1e-4
ORDINARY_SGD = 1e-3
"""A plain gradient step at this rate or above is small because its gradient is."""


@rule.check
def updates_too_small(training: Training) -> Iterator[Finding]:
    outcome = progress(training)
    if outcome.verdict is Verdict.LEARNING or outcome.updates < FEWEST or training.breakdown is not None:
        return
    if _never_above_zero(training):
        # A warm-up that begins at 0 and rises once per epoch may have been cut off in its first.
        if not training.cut_short:
            yield _nothing_moves(training)
        return
    ratios = [ratio for _, ratio in training.typical_ratios]
    # Weights that have not moved in the whole run did not make the loss what it is, whatever its noise.
    moved = max(ratios, default=0.0) * training.taken
    if outcome.verdict is not Verdict.FLAT and moved > UNMOVED:
        return
    if len(ratios) < 3 or not 0 < max(ratios) < CRAWLS or _shrunk_by_clipping(training):
        return
    rate = max(max(step.rates, default=0.0) for step in training.taken_steps)
    if warming_up(training) or (not training.adaptive and rate >= ORDINARY_SGD):
        return
    yield rule.finding(
        f"a learning rate of {rate:g} moves the weights by {median(ratios):.0e} of their size per update, "
        "and the loss does not move",
        training.optimizer.built or training.stepped,
        evidence={
            "update to weight": f"{max(ratios):.1e} at most, 1e-03 is usual",
            "gradient norm": f"{median(step.norm for step in training.taken_steps):.3g}",
            "loss": outcome.story,
        },
        fix=f"at about {learning_rate(rate, median(ratios))} updates would have their usual size",
        confidence=0.88,
        subject=training.optimizer.id,
    )


def _never_above_zero(training: Training) -> bool:
    taken = training.taken_steps
    return bool(taken) and all(step.rates and not any(step.rates) for step in taken)


def _nothing_moves(training: Training) -> Finding:
    return rule.finding(
        f"the learning rate is 0 in all {training.taken} updates: the weights never move",
        training.optimizer.built or training.stepped,
        evidence={"gradient norm": f"{median(step.norm for step in training.taken_steps):.3g}"},
        fix="look at what sets the rate: a schedule that divides integers, or starts at 0 and stays there",
        confidence=0.95,
        subject=training.optimizer.id,
    )


def _shrunk_by_clipping(training: Training) -> bool:
    return median(step.used / step.norm for step in training.taken_steps if step.norm > 0) < 0.1


@rule.check
def only_a_higher_rate_fits(overfit: Overfit) -> Iterator[Finding]:
    own, rescue = overfit.own, overfit.rescue
    if own.fit is Fit.STUCK and rescue is not None and rescue.rate > own.rate:
        yield rule.finding(
            f"one batch is not learned at a learning rate of {own.rate:.2g}, and is at {rescue.rate:.2g}",
            overfit.where,
            evidence={
                f"{own.steps} steps at {own.rate:.2g}": f"loss {own.first:.4g} to {own.last:.4g}",
                f"{rescue.steps} steps at {rescue.rate:.2g}": f"loss {rescue.first:.4g} to {rescue.last:.4g}",
            },
            fix=f"raise the learning rate to about {rescue.rate:.2g}",
            subject="learning rate",
        )


@rule.check
def far_below_what_suits(found: RateRange) -> Iterator[Finding]:
    if found.suggestion is not None and found.own.rate * FAR_BELOW < found.suggestion:
        yield rule.finding(
            f"the learning rate of {found.own.rate:.2g} is {found.suggestion / found.own.rate:.0f} times "
            "below the one that suits this model",
            None,
            evidence={"a rate that suits": f"{found.suggestion:.2g}: {found.reason}"},
            fix=f"raise the learning rate to about {found.suggestion:.2g}",
            subject="learning rate",
        )
