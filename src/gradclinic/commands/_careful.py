"""What the user's own case does wrong in an experiment becomes one line that says where."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import torch

from gradclinic.case import Case
from gradclinic.case import __file__ as case_file
from gradclinic.errors import GradclinicError, UsageError
from gradclinic.probes._restore import undisturbed
from gradclinic.probes._tree import tensors

Made = TypeVar("Made")
_NOT_THEIRS = tuple(Path(file).resolve().parent for file in (case_file, torch.__file__ or ""))


def careful(experiment: Callable[..., Made], *given: object) -> Made:
    try:
        return experiment(*given)
    except GradclinicError:
        raise
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        if not any(frame.filename == case_file for frame in frames):
            raise
        theirs = [frame for frame in frames if not _ours_or_torch(frame.filename)]
        where = f" at {Path(theirs[-1].filename).name}:{theirs[-1].lineno}" if theirs else ""
        said = " ".join(str(error).split())
        raise UsageError(f"the case failed{where}: {type(error).__name__}: {said}") from error


def on_one_device(case: Case) -> None:
    home = str(next(case.model.parameters()).device)
    away = {str(tensor.device) for tensor in tensors(case.batch)} - {home}
    # A forward may move its batch by itself; another device is told only when that fails.
    if away and not _runs(case):
        others = ", ".join(sorted(away))
        raise UsageError(f"the batch is on {others} and the model on {home}; move them to one device")


def _runs(case: Case) -> bool:
    try:
        with undisturbed(case):
            case.evaluate()
    except Exception:  # whatever the user's code may raise
        return False
    return True


def _ours_or_torch(path: str) -> bool:
    return path.startswith("<") or any(Path(path).resolve().is_relative_to(home) for home in _NOT_THEIRS)
