"""Where ranks that were launched side by side, each under gradclinic, leave their records for one of them."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from hashlib import sha256
from pathlib import Path

from gradclinic.errors import GradclinicError
from gradclinic.processes.environment import launched_rank, world

_PATIENCE = 30.0
_POLL = 0.05


class Meeting:
    def __init__(self) -> None:
        self.rank = launched_rank() or 0
        self.size = _number("WORLD_SIZE", 1)
        self.here = _number("LOCAL_WORLD_SIZE", self.size)
        """How many of the ranks run on this machine."""
        self.first_here = _number("LOCAL_RANK", self.rank) == 0
        self.folder = _folder()
        self._sign("came")

    def agree(self, word: str) -> str:
        """The word of whoever came first, the same for all."""
        own, agreed = self.folder / f"{self.rank}.word", self.folder / "agreed"
        own.write_text(word, encoding="utf-8")
        with contextlib.suppress(FileExistsError):
            os.link(own, agreed)
        return agreed.read_text(encoding="utf-8")

    def leave(self) -> None:
        """All that this rank has to tell is in the folder."""
        self._sign("left")

    def wait_for_others(self) -> None:
        """Until the other ranks on this machine have left or are gone; in vain, only for so long."""
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until and any(map(self._is_busy, self.folder.glob("*.came"))):
            time.sleep(_POLL)

    def claim(self) -> bool:
        """True for the one rank that is to diagnose."""
        try:
            os.close(os.open(self.folder / "claimed", os.O_CREAT | os.O_EXCL))
        except OSError:
            return False
        return True

    def close(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def _sign(self, word: str) -> None:
        with contextlib.suppress(OSError):
            (self.folder / f"{self.rank}.{word}").write_text(str(os.getpid()), encoding="utf-8")

    def _is_busy(self, came: Path) -> bool:
        if came.with_suffix(".left").exists():
            return False
        try:
            os.kill(int(came.read_text(encoding="utf-8")), 0)
        except (OSError, ValueError):
            return False
        return True


def _folder() -> Path:
    """The same for all ranks of one launch on this machine, and nobody else's."""
    name = sha256(f"{world()} {os.getppid()}".encode()).hexdigest()[:16]
    folder = Path(tempfile.gettempdir()) / f"gradclinic-{os.getuid()}-{name}"
    folder.mkdir(mode=0o700, exist_ok=True)
    about = folder.stat()
    if about.st_uid != os.getuid() or about.st_mode & 0o077:
        raise GradclinicError(f"{folder} is open to others, so no records are read from it; remove it")
    return folder


def _number(variable: str, default: int) -> int:
    value = os.environ.get(variable, "")
    return int(value) if value.isdecimal() else default
