"""Does the first loss match what chance gives?

Evaluates the loss of the model as it is and compares it with the same loss of a blind guess
(uniform over the classes, or zero) and of the best constant guess (the classes' frequencies, or
the mean of the targets).
"""

from __future__ import annotations

import argparse

from gradclinic.case import Case
from gradclinic.facts.levels import InitialLoss
from gradclinic.probes._budget import Budget
from gradclinic.probes._losses import level, watch_losses
from gradclinic.probes._restore import undisturbed
from gradclinic.probes.outcome import Outcome

FACTS = (InitialLoss,)
"""What this experiment finds out."""


def initial_loss(case: Case) -> InitialLoss:
    with undisturbed(case):
        case.model.train()
        total, calls = watch_losses(case)
    return InitialLoss(total, tuple(level(call) for call in calls))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """It needs nothing but the case."""


def run(case: Case, args: argparse.Namespace, budget: Budget) -> Outcome:
    found = initial_loss(case)
    gaps = {} if found.levels else {"first loss": "the loss is none of those whose chance level is known"}
    return Outcome((found,), conclusion(found), gaps=gaps)


def conclusion(found: InitialLoss) -> str:
    if not found.levels:
        return f"init: the first loss is {found.total:.4g}; what chance gives is not known for this loss"
    told = [
        f"{each.loss} {each.value:.4g} against {each.chance:.4g} of a blind guess "
        f"and {each.base_rate:.4g} of the best constant one"
        for each in found.levels
    ]
    return f"init: the first loss is {found.total:.4g}: {'; '.join(told)}"
