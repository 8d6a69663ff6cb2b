"""Where in the user's source something happened: the innermost frame that is the user's own."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from types import FrameType

import torch

import gradclinic
from gradclinic.facts import Location

_NOWHERE = Location("<unknown>", 0)
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_TYPED_IN = ("<stdin>", "<ipython-input", "<console>")


class Places:
    """Tells the user's frames from those of libraries, and makes locations of them."""

    def __init__(self, own: Iterable[str] = (), start: str | None = None) -> None:
        """`own` are files or directories that are the user's wherever they lie; paths are told
        relative to `start`."""
        self._own = tuple(os.path.realpath(path) for path in own)
        self._start = start or os.getcwd()
        self._verdicts: dict[str, bool] = {}
        self._paths: dict[str, str] = {}
        self._locations: dict[tuple[str, int, str, str], Location] = {}

    def here(self) -> Location:
        frame: FrameType | None = sys._getframe(1)
        via = ""
        while frame is not None:
            code = frame.f_code
            if self.is_users(code.co_filename):
                return self.named(code.co_filename, frame.f_lineno or 0, code.co_qualname, via)
            if not via and not _is_between(code.co_filename):
                via = f"{code.co_filename}:{frame.f_lineno}"
            frame = frame.f_back
        return _NOWHERE

    def frames(self) -> Iterator[FrameType]:
        """The user's frames, innermost first. Do not keep them: a frame keeps its variables alive."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if self.is_users(frame.f_code.co_filename):
                yield frame
            frame = frame.f_back

    def callers(self) -> Iterator[FrameType]:
        """The user's frames, if it is they that call torch here and not a library between."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and _is_between(frame.f_code.co_filename):
            frame = frame.f_back
        return self.frames() if frame is not None and self.is_users(frame.f_code.co_filename) else iter(())

    def of(self, frame: FrameType) -> Location:
        return self.at(frame, frame.f_lineno or 0)

    def at(self, frame: FrameType, line: int) -> Location:
        """A line of a frame that may have moved on since, as those of a traceback have."""
        return self.named(frame.f_code.co_filename, line, frame.f_code.co_qualname)

    def named(self, filename: str, line: int, function: str, via: str = "") -> Location:
        key = (filename, line, function, via)
        known = self._locations.get(key)
        if known is None:
            inside = "" if function == "<module>" else function.replace("<locals>.", "")
            known = self._locations[key] = Location(
                self._path(filename), line, function=inside, via=via
            )
        return known

    def file(self, place: Location) -> str:
        """Where the source of a place can be read."""
        return os.path.join(self._start, place.path)

    def is_users(self, filename: str) -> bool:
        verdict = self._verdicts.get(filename)
        if verdict is None:
            verdict = self._verdicts[filename] = self._judge(filename)
        return verdict

    def _judge(self, filename: str) -> bool:
        if filename.startswith("<"):
            return filename.startswith(_TYPED_IN)
        real = os.path.realpath(filename)
        if any(real == own or real.startswith(own + os.sep) for own in self._own):
            return True
        return not real.startswith(_LIBRARIES) and not any(mark in real for mark in _INSTALLED)

    def _path(self, filename: str) -> str:
        if filename not in self._paths:
            absolute = os.path.abspath(filename)
            below = absolute.startswith(self._start + os.sep)
            self._paths[filename] = os.path.relpath(absolute, self._start) if below else filename
        return self._paths[filename]


@lru_cache(maxsize=256)
def _is_between(filename: str) -> bool:
    """Ours or torch's, or made up for a function that is neither's."""
    own = filename.startswith("<") and not filename.startswith(_TYPED_IN)
    return own or os.path.realpath(filename).startswith(_OURS_AND_TORCH)


def _inside(*folders: str | Path) -> tuple[str, ...]:
    return tuple(os.path.realpath(folder) + os.sep for folder in folders)


_OURS_AND_TORCH = _inside(Path(gradclinic.__file__).parent, Path(torch.__file__).parent)
_LIBRARIES = _OURS_AND_TORCH + _inside(sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"))
