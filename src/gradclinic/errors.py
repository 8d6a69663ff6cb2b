"""Errors that end a command with one clear line and a documented exit code."""

from __future__ import annotations


class GradclinicError(Exception):
    """Something the user should read as one line; `exit_code` is what the command returns."""

    exit_code = 2


class UsageError(GradclinicError):
    """The command was called with something it cannot work with."""
