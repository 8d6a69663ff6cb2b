"""Which display of a running script suits where `run` writes to."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from gradclinic.runtime import Recording
from gradclinic.store.events import Events
from gradclinic.terminal import lines, panel
from gradclinic.terminal.pulse import Pulse


@contextmanager
def live(
    args: argparse.Namespace, target: str, recording: Recording, events: Events | None
) -> Iterator[None]:
    """A panel for a person at a terminal, plain lines for a log that asks for them, else nothing."""
    display, seconds = _display(args, target)
    if display is None:
        yield
        return
    recording.listen(Pulse(display.show, seconds, events))
    process = os.getpid()
    try:
        yield
    finally:
        # A child that the script forked shares the terminal, but the panel is not its own to close.
        if os.getpid() == process:
            display.close()


def _display(args: argparse.Namespace, target: str) -> tuple[panel.Panel | lines.Lines | None, float]:
    if args.quiet:
        return None, 0.0
    if panel.suits(sys.stderr):
        return panel.Panel(sys.stderr, f"gradclinic · {target}"), panel.SECONDS
    return (lines.Lines(sys.stderr), lines.SECONDS) if args.verbose else (None, 0.0)
