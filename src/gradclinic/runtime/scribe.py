"""Keeps the record of this process up to date while it trains, so that no end can lose it.

There is no handler of signals in this: one that is written in Python cannot run while a rank waits
for another inside a collective, and would keep a launcher from ending it.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch.optim.optimizer import register_optimizer_step_post_hook

from gradclinic.processes.environment import launched_rank, world
from gradclinic.processes.record import Record, RecordFile
from gradclinic.runtime.recording import Recording

_SECONDS = 2.0
"""Between two writings at least, once the run is under way,"""
_SHARE = 200
"""and this many times as long as the last one took."""


class Scribe:
    def __init__(self, recording: Recording, folder: Path) -> None:
        self._recording = recording
        self._file = RecordFile(folder)
        self._process = os.getpid()
        self._rank = launched_rank()
        self._steps = 0
        self._next_step = 1
        self._next_time = 0.0
        self._finished = False
        self._hook = register_optimizer_step_post_hook(self._stepped)

    def finish(self) -> None:
        """Write for the last time, if the process trained at all."""
        # A child forked by hand ends through the handlers of its parent, whose record it is not.
        if self._finished or os.getpid() != self._process:
            return
        self._finished = True
        self._hook.remove()
        self._recording.complete = self._recording.complete and _goes_well()
        if self._recording.trained:
            self._write(final=True)

    def _stepped(self, *_: object) -> None:
        if self._finished or torch.compiler.is_compiling() or not self._recording.watching:
            return
        self._steps += 1
        begun = time.monotonic()
        if self._steps >= self._next_step or begun >= self._next_time:
            self._write(final=False)
            now = time.monotonic()
            self._next_step = 2 * self._steps
            self._next_time = now + max(_SECONDS, _SHARE * (now - begun))

    def _write(self, *, final: bool) -> None:
        try:
            self._file.write(self._record(final=final))
        except Exception as error:
            self._file.failed(error)

    def _record(self, *, final: bool) -> Record:
        if dist.is_available() and dist.is_initialized():
            self._rank = dist.get_rank()
        recording = self._recording
        observation = recording.observation(ended=final)
        return Record(observation, recording.steps, recording.problems, world(), self._rank, final)


def _goes_well() -> bool:
    """False while an error is ending the process."""
    error = sys.exc_info()[1]
    ended = isinstance(error, SystemExit) and error.code in (None, 0)
    return (error is None or ended) and not hasattr(sys, "last_value")
