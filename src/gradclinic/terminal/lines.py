"""Progress as plain lines, for logs."""

from __future__ import annotations

from typing import TextIO

from gradclinic.terminal.pulse import Pulse, numbers

SECONDS = 10.0


class Lines:
    def __init__(self, out: TextIO) -> None:
        self._out = out

    def show(self, pulse: Pulse) -> None:
        words = ", ".join(f"{name} {value}" for name, value in numbers(pulse))
        alert = f"; {pulse.alert}" if pulse.alert else ""
        print(f"gradclinic: {words}{alert}", file=self._out, flush=True)

    def close(self) -> None:
        """Nothing is left to clear away."""
