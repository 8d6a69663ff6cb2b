"""Errors that end a command with one clear line and a documented exit code."""

from __future__ import annotations

import os

DEBUG_VARIABLE = "GRADCLINIC_DEBUG"


class GradclinicError(Exception):
    """Something the user should read as one line; `exit_code` is what the command returns."""

    exit_code = 2


class UsageError(GradclinicError):
    """The command was called with something it cannot work with."""


def debugging() -> bool:
    """True if the user wants tracebacks instead of one line."""
    return bool(os.environ.get(DEBUG_VARIABLE))


def fault(error: Exception) -> str:
    """A fault of gradclinic itself in one line: what, where, and how to see more."""
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    place = f" at {os.path.basename(frame.tb_frame.f_code.co_filename)}:{frame.tb_lineno}" if frame else ""
    what = f"{type(error).__name__}: {error}".splitlines()[0]
    return f"internal fault, {what}{place}; set {DEBUG_VARIABLE}=1 to see the traceback"
