"""Writes a run down while it trains, in batches, at a share of its time that cannot grow."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradclinic.facts import Actor
from gradclinic.facts.memory import MemoryAccount
from gradclinic.facts.training import Activation, Sample, Step, TensorInfo
from gradclinic.store import folder as folders
from gradclinic.store.batch import Batch
from gradclinic.store.events import Events

if TYPE_CHECKING:
    from gradclinic.store.tables import Tables

_FIRST_WRITING = 0.2
"""Seconds after the first update,"""
_SECONDS = 0.5
"""between two writings at least,"""
_SHARE, _SHARE_WAITED = 500, 50
"""and this many times what the last one took, of the processor and, with a slow disk, of the clock."""
_MOST_AT_ONCE = 128
"""Updates of one optimizer in one writing; a loop that makes more is recorded with gaps."""
_MOST_AT_THE_END = 2048
_MOST_PENDING = 4096
_MOST_FAILURES = 5


class Store:
    """Listens to a recording. Whatever goes wrong in here stays here, in `problem`."""

    def __init__(
        self, folder: Path, about: Mapping[str, object], rank: Callable[[], int | None] = lambda: 0
    ) -> None:
        """`rank` is asked when the file is made: a process may learn its own late."""
        self.folder = folder.absolute()
        self.problem = ""
        self.events = Events()
        self.between_writings: Callable[[int], object] = lambda step: None
        """Called after a writing, with the update it was made at; what it adds goes into the next."""
        self._rank = rank
        self._process = os.getpid()
        self._path: Path | None = None
        self._tables: Tables | None = None
        own = {"process": self._process, "host": os.uname().nodename, "started": time.time()}
        self._batch = Batch(about={**about, **own})
        self._failures = 0
        self._finished = False
        self._next = math.inf

    @property
    def path(self) -> Path | None:
        """The file, once there is one."""
        return None if self.problem else self._path

    def introduced(self, optimizer: Actor, tensors: tuple[TensorInfo, ...]) -> None:
        self._batch.introduced[optimizer.id] = (optimizer, tensors)

    def updated(self, optimizer: str, step: Step) -> None:
        if self.problem:
            return
        now = time.monotonic()
        pending = self._batch.steps[optimizer]
        pending.append((time.time(), step))
        if len(pending) > _MOST_PENDING:
            del pending[1::2]
        self.events.look_at(optimizer, step)
        if self._next == math.inf:
            self._next = now + _FIRST_WRITING
        elif now >= self._next:
            self.write()
            self.between_writings(step.index)

    def sampled(self, optimizer: str, sample: Sample) -> None:
        if not self.problem:
            self._batch.samples[optimizer].append(sample)

    def activated(self, optimizer: str, activations: tuple[Activation, ...]) -> None:
        if not self.problem:
            self._batch.activations[optimizer].extend(activations)

    def weighed(self, memory: MemoryAccount) -> None:
        self.keep("memory", {"held": [asdict(one) for one in memory.held]})

    def keep(self, name: str, document: Mapping[str, Any]) -> None:
        """A document under this name, in the place of an earlier one."""
        self._batch.documents[name] = json.dumps(document, ensure_ascii=False)

    def finish(self, **about: object) -> None:
        """Write what is left, if the run trained at all."""
        if not self._finished and (self._batch.steps or self._path is not None):
            self._finished = True
            self._batch.about |= {"ended": time.time(), **about}
            self.write(last=True)

    def write(self, *, last: bool = False) -> None:
        # In a forked child this is somebody else's file.
        if self.problem or os.getpid() != self._process:
            return
        began, worked = time.monotonic(), time.thread_time()
        try:
            self._write(_MOST_AT_THE_END if last else _MOST_AT_ONCE, patience=2.0 if last else 0.0)
            self._failures = 0
        except Exception as error:  # a full disk, a lost mount, a locked or removed file
            self._failures += 1
            if self._path is None or self._failures >= _MOST_FAILURES or last:
                self._give_up(error)
        now = time.monotonic()
        took = time.thread_time() - worked
        self._next = now + max(_SECONDS, _SHARE * took, _SHARE_WAITED * (now - began))

    def _write(self, most: int, *, patience: float) -> None:
        # Imported late: most of a short script's life needs no database.
        from gradclinic.store.schema import connect
        from gradclinic.store.tables import Tables

        if self._path is None:
            folders.make(self.folder)
            self._batch.about["rank"] = self._rank()
        path = self._path or folders.file_of(self._rank(), self.folder)
        self._tables = self._tables or Tables()
        self._batch.events = [*self._batch.events, *self.events.taken()]
        connection = connect(path, patience=patience)
        try:
            connection.execute("BEGIN IMMEDIATE")
            self._tables.put(connection, self._batch, most)
            connection.execute("COMMIT")
        finally:
            # A connection that stayed open could not be carried over a fork.
            connection.close()
        self._path, self._batch = path, Batch()

    def _give_up(self, error: Exception) -> None:
        reason = getattr(error, "strerror", None) or str(error)
        self.problem = f"the run is not kept in {self.folder}: {reason}"
        self._batch = Batch()
