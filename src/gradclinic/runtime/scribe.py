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
        """Write for the last time, if there is anything to tell; the recording is over, too."""
        # A child forked by hand ends through the handlers of its parent, whose record it is not.
        if self._finished or os.getpid() != self._process:
            return
        self._finished = True
        self._hook.remove()
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
            record = self._record(final=final)
            if record.observation.cases:
                self._file.write(record)
        except Exception as error:
            self._file.failed(error)

    def _record(self, *, final: bool) -> Record:
        rank = rank_now()
        self._rank = self._rank if rank is None else rank
        recording = self._recording
        if final and recording.watching:
            error = _what_ends_this()
            recording.__exit__(type(error) if error else None, error, None)
        observation = recording.observation(ended=final)
        return Record(observation, recording.steps, recording.problems, world(), self._rank, final)


def rank_now() -> int | None:
    """Of this process, if it is one of several: as torch has it, or as the launcher said."""
    if dist.is_available() and dist.is_initialized():
        return dist.get_rank()
    return launched_rank()


def _what_ends_this() -> BaseException | None:
    """The error that is ending the process, not the exit that follows from it."""
    error = sys.exc_info()[1] or getattr(sys, "last_value", None)
    if not isinstance(error, SystemExit):
        return error
    return None if error.code in (None, 0) else error.__context__ or error
