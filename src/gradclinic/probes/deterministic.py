"""Do two runs from one seed agree bit by bit, and if not, where do they part?

Trains a few steps twice from the same seed and compares, in the order things happen: the weights
at the start, each batch, what every module puts out, each gradient, each weight.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass

import torch

from gradclinic.case import Case
from gradclinic.facts.repeat import Repeat
from gradclinic.probes._budget import Budget
from gradclinic.probes._fingerprint import fingerprint
from gradclinic.probes._restore import keep, random_state
from gradclinic.probes._trace import Trace, recording
from gradclinic.probes._trainee import Trainee
from gradclinic.probes._where import module_line
from gradclinic.probes.outcome import Outcome
from gradclinic.target import find_target

FACTS = (Repeat,)
"""What this experiment finds out."""

STEPS = 3
SEED = 20_011


@dataclass(frozen=True)
class _Mark:
    step: int
    what: str
    module: str
    bits: str


def repeat(make: Callable[[], Case] | Case, budget: Budget | None = None, steps: int = STEPS) -> Repeat:
    """`make` builds the case anew for each run; a `Case` by itself is put back to its start instead."""
    budget = budget or Budget()
    with random_state():
        undo = keep(make) if isinstance(make, Case) else None
        runs = []
        for number in (1, 2):
            _seed(SEED)
            case = make if isinstance(make, Case) else make()
            try:
                runs.append(_run(case, budget, steps, f"run {number} of 2"))
            finally:
                if undo is not None:
                    undo()
    (one, first_end), (two, second_end) = runs
    distance = max(
        (float((a - b).abs().max()) for a, b in zip(first_end, second_end, strict=True) if a.numel()),
        default=0.0,
    )
    for mark, other in zip(one, two, strict=False):
        if mark != other:
            return Repeat(steps, mark.step, mark.what, distance, module_line(case.model, mark.module))
    return Repeat(steps, None)


def _seed(seed: int) -> None:
    random.seed(seed)
    torch.manual_seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed)


def _run(case: Case, budget: Budget, steps: int, what: str) -> tuple[list[_Mark], list[torch.Tensor]]:
    case.model.train()
    trainee = Trainee(case)
    marks = [
        _Mark(-1, f"the initial {name}", name.rpartition(".")[0], fingerprint(p))
        for name, p in case.model.named_parameters()
    ]
    batches = case.batches()
    for step in budget.steps(what, steps):
        batch = next(batches, None)
        if batch is None:
            batches = case.batches()
            batch = next(batches)
        marks.append(_Mark(step, "the batch", "", fingerprint(batch)))
        trace = Trace()
        with recording(case.model, trace):
            loss = trainee.step(batch)
        for event in trace.events:
            if event.left:
                marks.append(_Mark(step, _output(event.module), event.module, fingerprint(event.tensors)))
        marks.append(_Mark(step, "the loss", "", repr(loss)))
        for name, parameter in case.parameters().items():
            inside = name.rpartition(".")[0]
            marks.append(_Mark(step, f"the gradient of {name}", inside, fingerprint(parameter.grad)))
            marks.append(_Mark(step, f"the update of {name}", inside, fingerprint(parameter)))
    return marks, [parameter.detach().double().clone() for parameter in case.model.parameters()]


def _output(module: str) -> str:
    return f"the output of {module}" if module else "the output of the model"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--steps", type=int, default=STEPS, metavar="N", help=f"per run (default: {STEPS})")


def run(_case: Case, args: argparse.Namespace, budget: Budget) -> Outcome:
    found = repeat(find_target(args.target), budget, args.steps)
    return Outcome((found,), conclusion(found), steps=2 * found.steps)


def conclusion(found: Repeat) -> str:
    if found.same:
        return f"deterministic: two runs of {found.steps} steps from one seed are equal bit for bit"
    when = "before the first step" if found.step == -1 else f"at step {(found.step or 0) + 1}"
    apart = f"{found.distance:.2g} apart in the end"
    return f"deterministic: two runs from one seed part {when}: {found.what}; {apart}"
