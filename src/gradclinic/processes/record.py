"""What one process leaves behind for the one that diagnoses all."""

from __future__ import annotations

import contextlib
import os
import pickle
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from gradclinic.facts import Observation

SUFFIX = ".record"
UNWATCHED = ".unwatched"


@dataclass(frozen=True)
class Record:
    observation: Observation
    steps: int
    problems: tuple[str, ...] = ()
    world: str = ""
    """Names the processes it trained with."""
    rank: int | None = None
    final: bool = False
    """Written when the process ended; else it went on, or was killed, after this was written."""
    process: int = field(default_factory=os.getpid)


class RecordFile:
    """The file of this process. Each writing replaces the last as a whole, so a kill loses none."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / f"{os.getpid()}-{time.time_ns()}{SUFFIX}"

    def write(self, record: Record) -> None:
        """Does nothing once the folder is gone: the diagnosis has been made without this process."""
        part = self.path.with_suffix(".part")
        with contextlib.suppress(FileNotFoundError):
            part.write_bytes(pickle.dumps(record))
            os.replace(part, self.path)

    def failed(self, error: Exception) -> None:
        """Leave word that this process was not seen to its end."""
        with contextlib.suppress(OSError):
            self.path.with_suffix(UNWATCHED).write_text(f"{type(error).__name__}: {error}", encoding="utf-8")


@contextlib.contextmanager
def record_folder() -> Iterator[Path]:
    """A folder for the time of one run; a child that leaves through here leaves it to its parent."""
    folder, process = Path(tempfile.mkdtemp(prefix="gradclinic-")), os.getpid()
    try:
        yield folder
    finally:
        if os.getpid() == process:
            shutil.rmtree(folder, ignore_errors=True)


def records(folder: Path) -> Iterator[Record]:
    """Those that can be read, in the order in which their processes began."""
    for path in sorted(folder.glob(f"*{SUFFIX}"), key=lambda path: path.stem.rpartition("-")[2]):
        with contextlib.suppress(OSError):
            yield pickle.loads(path.read_bytes())


def unwatched(folder: Path) -> tuple[str, ...]:
    """Why processes that import torch could not be watched, each reason once."""
    reasons = {path.read_text(encoding="utf-8") for path in sorted(folder.glob(f"*{UNWATCHED}"))}
    return tuple(f"a process of the command could not be watched: {reason}" for reason in sorted(reasons))
