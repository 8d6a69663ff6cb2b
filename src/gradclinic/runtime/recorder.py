"""The tape while it is being written."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, ParamSpec, TypeVar

from gradclinic.facts import Event, EventKind, Location, Source, Tape
from gradclinic.runtime.actors import Actors
from gradclinic.runtime.places import Places

P = ParamSpec("P")
T = TypeVar("T")
CAPACITY = 4000
_forks = 0
"""How many forks lie between this process and the first; quicker than to ask the system at every call."""


def _forked() -> None:
    global _forks
    _forks += 1


os.register_at_fork(after_in_child=_forked)


class StopTraining(SystemExit):
    """Ends a script that has taken the steps it was given, in any process, as `sys.exit(0)` would."""


class Recorder:
    """Events in order, up to `capacity`; after that only how often each kind happened."""

    def __init__(self, places: Places, *, capacity: int = CAPACITY, step_limit: int | None = None) -> None:
        self.places = places
        self.actors = Actors()
        self.problems: list[str] = []
        self.steps = 0
        self.recording = True
        self._events: list[Event] = []
        self._totals: Counter[tuple[EventKind, str]] = Counter()
        self._capacity = capacity
        self._step_limit = step_limit
        self._open: set[str] = set()
        self._forks = _forks

    @property
    def full(self) -> bool:
        return len(self._events) >= self._capacity

    @property
    def watching(self) -> bool:
        """False in a forked child, whose events are not those of this program."""
        return self.recording and self._forks == _forks

    def emit(
        self,
        kind: EventKind,
        actor: str | None = None,
        optimizers: frozenset[str] | None = frozenset(),
        *,
        where: Location | None = None,
        **attrs: Any,
    ) -> None:
        self._totals[kind, ""] += 1
        if actor is not None:
            self._totals[kind, actor] += 1
        if kind is EventKind.STEP:
            self.steps += 1
        if not self.full:
            place = where or self.places.here()
            event = Event(kind, place, actor, optimizers, attrs, at=time.perf_counter())
            self._events.append(event)

    def widen(self, kind: EventKind, optimizers: frozenset[str]) -> None:
        """The latest event of this kind turned out to concern these optimizers too."""
        if self.full:
            return
        for position in range(len(self._events) - 1, -1, -1):
            event = self._events[position]
            if event.kind is kind:
                self._events[position] = replace(
                    event, optimizers=(event.optimizers or frozenset()) | optimizers
                )
                return

    def latest(self, kind: EventKind) -> Event | None:
        """The last event of this kind that is on the tape."""
        return next((event for event in reversed(self._events) if event.kind is kind), None)

    def losses_stepped_on(self) -> dict[str, Location]:
        """For each optimizer, where the backward was called that came right before its first step."""
        found: dict[str, Location] = {}
        backward: Location | None = None
        for event in self._events:
            if event.kind is EventKind.BACKWARD:
                backward = event.where
            elif event.kind is EventKind.STEP and event.actor is not None and backward is not None:
                found.setdefault(event.actor, backward)
        return found

    def counted(self, *kinds: EventKind) -> int:
        return sum(self._totals[kind, ""] for kind in kinds)

    def enter(self, scope: str) -> bool:
        """False when a call of this scope is under way already."""
        if scope in self._open or not self.watching:
            return False
        self._open.add(scope)
        return True

    def leave(self, scope: str) -> None:
        self._open.discard(scope)

    def within(self, scope: str) -> bool:
        return scope in self._open

    def safely(self, observe: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
        """Call an observer; whatever goes wrong in it stays here."""
        if not self.watching:
            return None
        try:
            return observe(*args, **kwargs)
        except Exception as error:
            self._failed(error)
            self.emit(EventKind.OPAQUE, optimizers=None)
            return None

    def told(self, tell: Callable[[], Iterable[object]]) -> list[object]:
        """What an observer has to tell when the recording is over."""
        try:
            return list(tell())
        except Exception as error:
            self._failed(error)
            return []

    def _failed(self, error: Exception) -> None:
        problem = f"an observer failed and part of the run was not seen: {type(error).__name__}: {error}"
        if problem not in self.problems:
            self.problems.append(problem)

    @property
    def enough(self) -> bool:
        """As many steps were taken as the user asked to see."""
        return self._step_limit is not None and self.steps >= self._step_limit

    def stop_if_enough(self) -> None:
        if self.enough and self.watching:
            raise StopTraining(0)

    def tape(self, *, complete: bool) -> Tape:
        events = _up_to_last_step(self._events) if self.full else self._events
        return Tape(Source.RUNTIME, tuple(events), dict(self.actors.known), complete, dict(self._totals))


def _up_to_last_step(events: list[Event]) -> list[Event]:
    """A tape that was cut must not look as if work was left undone at its end."""
    for position in range(len(events) - 1, -1, -1):
        if events[position].kind is EventKind.STEP:
            return events[: position + 1]
    return events
