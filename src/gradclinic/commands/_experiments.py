"""Experiments on the training step that `run --probe` took from a script."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from gradclinic import probes
from gradclinic.case import Case
from gradclinic.commands._careful import careful
from gradclinic.commands._progress import progress
from gradclinic.errors import UsageError
from gradclinic.probes._budget import Budget
from gradclinic.probes.outcome import Outcome
from gradclinic.runtime.capture import Capture, Captured

KINDS = ("overfit", "init", "lr", "batch")
"""Those that need one batch and no more; the others need a Case that knows the data or builds itself anew."""
_SECONDS = 60.0


def wanted(text: str) -> tuple[str, ...]:
    """`overfit,init,lr` as names of experiments."""
    names = tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))
    for name in names:
        if name not in KINDS:
            raise UsageError(
                f"--probe takes {', '.join(KINDS)}; for {name!r} see `gradclinic probe`, which needs a Case"
            )
    return names


def experiment(kinds: Sequence[str], capture: Capture, *, quiet: bool) -> tuple[list[Outcome], list[str]]:
    """What each experiment found, and what could not be asked."""
    if capture.captured is None:
        return [], [f"no experiment was made: {capture.why_not}; `gradclinic probe` makes them on a Case"]
    case = _case(capture.captured)
    outcomes: list[Outcome] = []
    problems: list[str] = []
    with progress(quiet=quiet) as tell:
        for kind in kinds:
            module = import_module(f"{probes.__name__}.{kind}")
            parser = argparse.ArgumentParser()
            module.add_arguments(parser)
            try:
                outcomes.append(careful(module.run, case, parser.parse_args([]), Budget(_SECONDS, tell)))
            except UsageError as error:
                problems.append(f"the experiment {kind} could not be made: {error}")
    return outcomes, problems


def _case(captured: Captured) -> Case:
    def forward(model: Any, batch: Any) -> Any:
        args, kwargs, _ = batch
        return model(*args, **kwargs)

    def loss(outputs: Any, batch: Any) -> Any:
        return captured.loss(outputs, batch[2])

    return Case(
        captured.model,
        captured.batch,
        loss,
        forward=forward,
        optimizer=captured.optimizer,
        name="the script's first step",
    )
