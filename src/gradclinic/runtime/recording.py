"""A recording of training: observers in, the program runs, observers out, facts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType

import torch
from torch import nn

from gradclinic.facts import ActorKind, EventKind, Observation, Source
from gradclinic.runtime.capture import Capture
from gradclinic.runtime.listening import Listener
from gradclinic.runtime.observers import ALL
from gradclinic.runtime.places import Places
from gradclinic.runtime.recorder import CAPACITY, Recorder
from gradclinic.runtime.scene import Scene


class Recording:
    """Watches all that torch does in this process while it is open; training is not changed by it.

    with Recording() as recording:
        train()
    observation = recording.observation()
    """

    def __init__(
        self,
        *,
        own: Iterable[str] = (),
        start: str | None = None,
        step_limit: int | None = None,
        capacity: int = CAPACITY,
    ) -> None:
        """`own` are files or directories to count as the user's wherever they lie; places are told
        relative to `start`, the current directory by default."""
        self._recorder = Recorder(Places(own, start), capacity=capacity, step_limit=step_limit)
        self._scene = Scene(self._recorder)
        self._captures: list[Capture] = []
        self.complete = True
        """Set to False when the program was stopped before its natural end."""

    def __enter__(self) -> Recording:
        for observer in ALL:
            observer.install(self._scene)
        for capture in self._captures:
            capture.watch(self._scene)
        self._scene.forwards.watch(self._recorder, self._scene.patches)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, Exception):
            for ending in self._scene.endings:
                self._recorder.safely(ending, error)
        self._recorder.recording = False
        self._scene.patches.undo()
        if kind is not None:
            self.complete = False

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Torch as it is without the recording, and nothing noted, for as long as this is open."""
        self._recorder.recording = False
        try:
            with self._scene.patches.lifted():
                yield
        finally:
            self._recorder.recording = True

    def introduce(self, model: nn.Module | None, optimizers: Iterable[torch.optim.Optimizer]) -> None:
        """Objects that exist already when the recording begins."""
        actors = self._scene.actors
        if model is not None:
            actors.adopt(model, ActorKind.MODEL, "model")
        for optimizer in optimizers:
            actors.adopt(optimizer, ActorKind.OPTIMIZER, "optimizer")

    def capture(self, capture: Capture) -> None:
        """Let `capture` wait for a training step; to be called before the recording is opened."""
        self._captures.append(capture)

    def listen(self, listener: Listener) -> None:
        """Tell `listener` each update as it is made."""
        self._scene.listeners.add(listener)

    @property
    def steps(self) -> int:
        """Optimizer steps taken, those the scaler skipped included."""
        return self._recorder.steps

    @property
    def trained(self) -> bool:
        """There was a backward or a step."""
        return self._recorder.counted(EventKind.BACKWARD, EventKind.STEP) > 0

    @property
    def watching(self) -> bool:
        """False in a forked child, and when the recording is over."""
        return self._recorder.watching

    @property
    def problems(self) -> tuple[str, ...]:
        return (*self._recorder.problems, *self._scene.listeners.problems)

    def observation(self, *, ended: bool = True) -> Observation:
        """What was seen; before the program has `ended`, what was seen so far."""
        tape = self._recorder.tape(complete=self.complete and ended)
        cases: list[tuple[object, ...]] = [(tape,)] if self.trained else []
        for told in self._scene.facts:
            cases.extend((fact,) for fact in self._recorder.told(told))
        return Observation(Source.RUNTIME, tuple(cases), dict(self._scene.gaps))
