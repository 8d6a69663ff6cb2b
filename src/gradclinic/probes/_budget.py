"""How long an experiment may take, and how it tells how far it is."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from gradclinic.errors import UsageError

Progress = Callable[[str, float], None]
"""Called with what is being done and the fraction of it that is."""

_UNITS = {"": 1.0, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


def seconds(text: str) -> float:
    """`60s`, `2m`, `1.5h` or a bare number of seconds."""
    matched = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*([a-z]*)\s*", text.lower())
    if matched is None or matched[2] not in _UNITS or float(matched[1]) <= 0:
        raise UsageError(f"{text!r} is no time; write it like 60s, 2m or 1.5h")
    return float(matched[1]) * _UNITS[matched[2]]


def silent(what: str, fraction: float) -> None:
    """Progress that nobody looks at."""


@dataclass
class Budget:
    """A stretch of time, handed from an experiment to the parts it is made of."""

    seconds: float = 60.0
    progress: Progress = silent
    _start: float = field(default_factory=time.monotonic)

    @property
    def left(self) -> float:
        return self._start + self.seconds - time.monotonic()

    @property
    def spent(self) -> bool:
        return self.left <= 0

    def steps(self, what: str, most: int) -> Iterator[int]:
        """Count to `most`, telling the progress, and stop early when the time is over."""
        for step in range(most):
            if self.spent:
                return
            self.progress(what, step / most)
            yield step
        self.progress(what, 1.0)

    def share(self, fraction: float) -> Budget:
        """A part of what is left, for one part of the experiment."""
        return Budget(max(0.0, self.left) * fraction, self.progress)
