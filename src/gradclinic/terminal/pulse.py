"""How training goes, in a few numbers that are kept up to date."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from math import isfinite

from gradclinic.facts import Actor
from gradclinic.facts.memory import MemoryAccount
from gradclinic.facts.training import Activation, Sample, Step, TensorInfo
from gradclinic.store.events import Events

_MOST_LOSSES = 64
_SHARE = 300
"""Between two showings at least this many times what the last one took."""
_RECENT = 50
"""Updates that the speed is told from."""


class Pulse:
    """Listens to a recording and calls `show(pulse)` when at least `seconds` have passed.

    Follows the optimizer that stepped first: of several, that is the one whose loss comes first, too.
    """

    def __init__(self, show: Callable[[Pulse], None], seconds: float, events: Events | None) -> None:
        """`events` are somebody else's, who looks after them; None: our own."""
        self.step: Step | None = None
        self.norm: float | None = None
        """Of the gradients, when they were last measured."""
        self.losses: list[float] = []
        """Over the whole run, each the mean of as many updates as the others."""
        self._show = show
        self._seconds = seconds
        self._own = Events() if events is None else None
        self._events = events or self._own or Events()
        self._followed = ""
        self._next = 0.0
        self._times: deque[float] = deque(maxlen=_RECENT)
        self._pending: list[float] = []
        self._bucket = 1

    @property
    def alert(self) -> str:
        return self._events.latest

    @property
    def speed(self) -> float | None:
        """Updates a second."""
        if len(self._times) < 2 or self._times[-1] <= self._times[0]:
            return None
        return (len(self._times) - 1) / (self._times[-1] - self._times[0])

    def introduced(self, optimizer: Actor, tensors: tuple[TensorInfo, ...]) -> None:
        self._followed = self._followed or optimizer.id

    def updated(self, optimizer: str, step: Step) -> None:
        if self._own is not None:
            self._own.look_at(optimizer, step)
        if optimizer != self._followed:
            return
        now = time.monotonic()
        self.step = step
        if step.measured:
            self.norm = step.norm
        self._times.append(now)
        if step.loss is not None and isfinite(step.loss):
            self._remember(step.loss)
        if now >= self._next:
            began = time.thread_time()
            self._show(self)
            took = time.thread_time() - began
            self._next = now + max(self._seconds, _SHARE * took)

    def _remember(self, loss: float) -> None:
        self._pending.append(loss)
        if len(self._pending) < self._bucket:
            return
        self.losses.append(sum(self._pending) / len(self._pending))
        self._pending.clear()
        if len(self.losses) >= _MOST_LOSSES:
            pairs = zip(self.losses[::2], self.losses[1::2], strict=True)
            self.losses = [(one + other) / 2 for one, other in pairs]
            self._bucket *= 2

    def sampled(self, optimizer: str, sample: Sample) -> None:
        """Not shown."""

    def activated(self, optimizer: str, activations: tuple[Activation, ...]) -> None:
        """Not shown."""

    def weighed(self, memory: MemoryAccount) -> None:
        """Not shown."""


def numbers(pulse: Pulse) -> list[tuple[str, str]]:
    """What there is to tell, each with its name."""
    step = pulse.step
    if step is None:
        return []
    shown = [("step", f"{step.index + 1:,}")]
    if step.loss is not None:
        shown.append(("loss", f"{step.loss:.4g}"))
    if step.skipped or pulse.norm is not None:
        shown.append(("norm", "skipped" if step.skipped else f"{pulse.norm:.3g}"))
    if step.rates:
        shown.append(("rate", f"{step.rates[0]:.3g}"))
    if step.scale:
        shown.append(("scale", f"{step.scale:.3g}"))
    if pulse.speed is not None:
        shown.append(("steps/s", f"{pulse.speed:.3g}"))
    return shown
