"""Running a command to its end, with its own input, output and signals."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Mapping, Sequence
from types import FrameType

from gradclinic.errors import UsageError

_SIGNALLED = 128


def launch(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """The exit code of the command; 128 and the signal's number if one ended it, as a shell says it."""
    with _Signals() as signals:
        try:
            process = subprocess.Popen(command, env=environment)
        except FileNotFoundError as error:
            raise UsageError(
                f"there is no command {command[0]}; after -- comes what you would run"
            ) from error
        except OSError as error:
            raise UsageError(f"cannot run {command[0]}: {error.strerror}") from error
        signals.concern(process)
        code = process.wait()
    return code if code >= 0 else _SIGNALLED - code


class _Signals:
    """An interrupt from the keyboard reaches the command by itself and is only waited for; the second
    one, and any request to terminate, is handed on."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._interrupts = 0
        self._to_end = False

    def __enter__(self) -> _Signals:
        self._before = [
            (number, signal.signal(number, handler))
            for number, handler in ((signal.SIGINT, self._interrupted), (signal.SIGTERM, self._terminated))
        ]
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before:
            signal.signal(number, handler)

    def concern(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        if self._to_end:
            process.terminate()

    def _interrupted(self, number: int, frame: FrameType | None) -> None:
        self._interrupts += 1
        if self._interrupts > 1:
            self._terminated(number, frame)

    def _terminated(self, number: int, frame: FrameType | None) -> None:
        self._to_end = True
        if self._process is not None:
            self._process.terminate()
