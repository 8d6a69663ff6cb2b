"""Does training go on after a reload as if nothing had happened?

Trains straight through, and beside it trains, saves, loads in a fresh process and trains on; then
compares bit by bit, and names what the checkpoint did not bring back. Give a function that returns
a `Case`, or a `Training` with the save and load of your own.
"""

from __future__ import annotations

import argparse
import inspect
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from gradclinic.case import Case
from gradclinic.errors import UsageError
from gradclinic.facts.repeat import Resume
from gradclinic.probes._budget import Budget
from gradclinic.probes._fingerprint import fingerprint
from gradclinic.probes._restore import keep, random_state
from gradclinic.probes._training import Training, random_states
from gradclinic.probes._tree import tensors
from gradclinic.probes._where import function_line
from gradclinic.probes.outcome import Outcome
from gradclinic.target import find_target

FACTS = (Resume,)
"""What this experiment finds out."""

STEPS = 3
Make = Callable[[], "Case | Training"]


def resume(make: Make | Case, budget: Budget | None = None, steps: int = STEPS) -> Resume:
    """`make` builds the training anew; a `Case` by itself is put back to its start instead."""
    budget = budget or Budget()
    with tempfile.TemporaryDirectory(prefix="gradclinic-") as folder, random_state() as rewind:
        checkpoint, ended = Path(folder) / "checkpoint.pt", Path(folder) / "end.pt"
        undo = keep(make) if isinstance(make, Case) else rewind
        try:
            training = _build(make)
            budget.progress("training straight through", 0.0)
            for _ in range(steps):
                training.step()
            training.save(checkpoint)
            saved = training.state()
            through = _go_on(training, steps)
            unused = {name for name, mark in random_states().items() if saved[name] == mark}
            end = _weights(training)
            budget.progress("training from the checkpoint", 0.5)
            target = None if isinstance(make, Case) else _target(make)
            undo()
            resumed = (
                _in_fresh_process(target, checkpoint, ended, steps, max(budget.left, 30.0))
                if target
                else None
            )
            fresh = resumed is not None
            if resumed is None:
                # Another seed stands for another process: nothing may be right by luck.
                torch.manual_seed(20_011)
                resumed = carry_on(_build(make), checkpoint, steps, ended)
        finally:
            undo()
        distance = _distance(end, torch.load(ended))
    budget.progress("training from the checkpoint", 1.0)
    differs = next(
        (
            step
            for step, pair in enumerate(zip(through, resumed["steps"], strict=True), 1)
            if pair[0] != pair[1]
        ),
        None,
    )
    # A random stream that the steps never draw from may be anywhere.
    lost = tuple(n for n, mark in saved.items() if resumed["loaded"].get(n) != mark and n not in unused)
    if differs is not None and through[differs - 1]["data"] != resumed["steps"][differs - 1]["data"]:
        lost = (*lost, "the position in the data")
    return Resume(steps, differs, distance, lost if differs else (), fresh, function_line(training.save))


def carry_on(training: Training, checkpoint: Path, steps: int, ended: Path) -> dict[str, Any]:
    """Load, train on, leave the weights in `ended`; what was seen on the way."""
    training.load(checkpoint)
    loaded = training.state()
    seen = {"loaded": loaded, "steps": _go_on(training, steps)}
    torch.save(_weights(training), ended)
    return seen


def _build(make: Make | Case) -> Training:
    made = make if isinstance(make, Case) else make()
    if isinstance(made, Case):
        return Training.of(made)
    if not isinstance(made, Training):
        raise UsageError(f"the target returned a {type(made).__name__}, expected a Case or a Training")
    return made


def _go_on(training: Training, steps: int) -> list[dict[str, str]]:
    """Per step, what the model was fed and what its weights became."""
    fed: list[str] = []
    hook = training.model.register_forward_pre_hook(
        lambda _module, args, kwargs: fed.append(fingerprint(tensors((args, kwargs)))), with_kwargs=True
    )
    marks = []
    try:
        for _ in range(steps):
            fed.clear()
            training.step()
            marks.append({"data": fingerprint(fed), "weights": fingerprint(_weights(training))})
    finally:
        hook.remove()
    return marks


def _weights(training: Training) -> dict[str, torch.Tensor]:
    return {name: p.detach().clone() for name, p in training.model.named_parameters()}


def _distance(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> float:
    gaps = [
        float((one[name].double() - other[name].double()).abs().max())
        for name in one
        if name in other and one[name].numel()
    ]
    return max((gap for gap in gaps if not math.isnan(gap)), default=0.0)


def _target(make: object) -> str | None:
    """`file.py:function`, for another process to find; None for what only this one can call."""
    name = getattr(make, "__qualname__", "")
    if not inspect.isfunction(make) or not name.isidentifier():
        return None
    file = inspect.getsourcefile(make)
    return f"{Path(file).resolve()}:{name}" if file and Path(file).is_file() else None


def _in_fresh_process(
    target: str, checkpoint: Path, ended: Path, steps: int, seconds: float
) -> dict[str, Any] | None:
    """None when the other process cannot import the target, as a test beside its fixtures may not."""
    command = [
        sys.executable,
        "-m",
        "gradclinic.probes._resumed",
        target,
        str(checkpoint),
        str(ended),
        str(steps),
    ]
    path = {"PYTHONPATH": ":".join(entry for entry in sys.path if entry)}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=seconds, env={**os.environ, **path}
        )
    except subprocess.TimeoutExpired as error:
        raise UsageError(
            f"the resumed training took longer than {seconds:.0f} s; give a larger --budget"
        ) from error
    if done.returncode == 3:
        return None
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()[-1:] or ["no message"]
        raise UsageError(f"loading the checkpoint in a fresh process failed: {last[0]}")
    seen: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return seen


ACCEPTS = (Case, Training)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--steps",
        type=int,
        default=STEPS,
        metavar="N",
        help=f"before and after the save (default: {STEPS})",
    )


def run(_case: Case | Training, args: argparse.Namespace, budget: Budget) -> Outcome:
    found = resume(find_target(args.target), budget, args.steps)
    return Outcome((found,), conclusion(found), steps=3 * found.steps)


def conclusion(found: Resume) -> str:
    where = "a fresh process" if found.fresh_process else "this process"
    if found.exact:
        return f"resume: {found.steps} steps after a reload in {where} are equal bit for bit"
    lost = ", ".join(found.not_restored[:6]) or "something outside the model, the optimizer and the parts"
    return (
        f"resume: training after a reload in {where} differs from step {found.differs_at} on, "
        f"by {found.distance:.2g} in the end; not restored: {lost}"
    )
