"""Watching a process that gradclinic did not start itself, from when torch is there until it ends."""

from __future__ import annotations

import atexit
import os
import sys
from multiprocessing.process import current_process
from multiprocessing.util import Finalize, register_after_fork
from pathlib import Path

from gradclinic.processes.environment import FOLDER, START, STEPS, STORE
from gradclinic.runtime.recording import Recording
from gradclinic.runtime.scribe import Scribe, rank_now
from gradclinic.store.writer import Store

_LAST = -100


def attach_to_this_process(folder: str) -> None:
    limit = os.environ.get(STEPS, "")
    main = getattr(sys.modules.get("__main__"), "__file__", None)
    recording = Recording(
        own=[main] if main else [],
        start=os.environ.get(START),
        step_limit=int(limit) if limit.isdecimal() else None,
    )
    recording.__enter__()
    endings = [Scribe(recording, Path(folder)).finish]
    kept_in = os.environ.get(STORE)
    if kept_in:
        store = Store(Path(kept_in), {"target": main or "", "arguments": sys.argv[1:]}, rank_now)
        recording.listen(store)
        endings.append(store.finish)
    for finish in endings:
        atexit.register(finish)
        # A process that multiprocessing forked ends without atexit.
        Finalize(None, finish, exitpriority=_LAST)
    follow_forks(recording)


def follow_forks(recording: Recording) -> None:
    """Watch the children that multiprocessing forks from this process, each on its own."""
    _following.append(_Forks(recording))


class _Forks:
    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._process = os.getpid()
        register_after_fork(self, _Forks._begun)

    def _begun(self) -> None:
        """Called at the beginning of every process of multiprocessing that knows this object."""
        folder = os.environ.get(FOLDER)
        if os.getpid() == self._process or not folder or _feeds_data():
            return
        _following.remove(self)
        self._recording.__exit__(None, None, None)
        attach_to_this_process(folder)


_following: list[_Forks] = []


def _feeds_data() -> bool:
    """True in a worker of a DataLoader, which reads and does not train."""
    target = getattr(current_process(), "_target", None)
    return str(getattr(target, "__module__", "")).startswith("torch.utils.data")
