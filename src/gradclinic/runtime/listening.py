"""Who is told each update's numbers as they come: the store, the live panel, a logger."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from gradclinic.facts import Actor
from gradclinic.facts.memory import MemoryAccount
from gradclinic.facts.training import Activation, Sample, Step, TensorInfo


class Listener(Protocol):
    """Called from inside the user's training loop, so every method must be quick.

    What it is told is made of plain numbers and may be kept; `optimizer` is the id of an actor.
    """

    def introduced(self, optimizer: Actor, tensors: tuple[TensorInfo, ...]) -> None:
        """The tensors this optimizer holds, before its first update and whenever they changed."""

    def updated(self, optimizer: str, step: Step) -> None:
        """An update was made, or skipped by the scaler."""

    def sampled(self, optimizer: str, sample: Sample) -> None:
        """More was measured of the update just told."""

    def activated(self, optimizer: str, activations: tuple[Activation, ...]) -> None:
        """The activations of one forward pass, each with a single sample."""

    def weighed(self, memory: MemoryAccount) -> None:
        """What the models and optimizers hold in memory, once updates are under way."""


class Listeners:
    """All of them. One that fails is told nothing more, and the others and the run go on."""

    def __init__(self) -> None:
        self._all: list[Listener] = []
        self.problems: list[str] = []

    def __bool__(self) -> bool:
        return bool(self._all)

    def add(self, listener: Listener) -> None:
        self._all.append(listener)

    def introduced(self, optimizer: Actor, tensors: tuple[TensorInfo, ...]) -> None:
        self._tell(lambda listener: listener.introduced(optimizer, tensors))

    def updated(self, optimizer: str, step: Step) -> None:
        self._tell(lambda listener: listener.updated(optimizer, step))

    def sampled(self, optimizer: str, sample: Sample) -> None:
        self._tell(lambda listener: listener.sampled(optimizer, sample))

    def activated(self, optimizer: str, activations: tuple[Activation, ...]) -> None:
        self._tell(lambda listener: listener.activated(optimizer, activations))

    def weighed(self, memory: MemoryAccount) -> None:
        self._tell(lambda listener: listener.weighed(memory))

    def _tell(self, tell: Callable[[Listener], None]) -> None:
        for listener in tuple(self._all):
            try:
                tell(listener)
            except Exception as error:
                self._all.remove(listener)
                name = type(listener).__name__
                self.problems.append(f"{name} failed and was left out: {type(error).__name__}: {error}")
