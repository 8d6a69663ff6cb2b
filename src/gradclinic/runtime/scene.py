"""What the observers of one recording share."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable
from typing import Any

from gradclinic.facts import ActorKind, EventKind, Location
from gradclinic.runtime.forwards import Forwards
from gradclinic.runtime.gradients import Gradients
from gradclinic.runtime.listening import Listeners
from gradclinic.runtime.names import assigned_name, builder
from gradclinic.runtime.patching import Patches, observed
from gradclinic.runtime.recorder import Recorder
from gradclinic.runtime.register import Register
from gradclinic.runtime.replicas import Replicas
from gradclinic.runtime.values import may_compute


class Scene:
    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.actors = recorder.actors
        self.gradients = Gradients(recorder.actors)
        self.register = Register(recorder.actors)
        self.replicas = Replicas(recorder.actors)
        self.patches = Patches()
        self.forwards = Forwards()
        self.functions: list[Callable[..., object]] = []
        """Who else is told of each torch function, its arguments and result, while the run is young."""
        self.listeners = Listeners()
        self.scaled_losses: dict[tuple[str, int], str] = {}
        """Graph nodes of recent losses that carry a scale, with the scaler's id."""
        self.plain_means: dict[tuple[str, int], None] = {}
        """Graph nodes of recent losses that are known means over their elements."""
        self.facts: list[Callable[[], Iterable[object]]] = []
        """What observers have to tell beside the tape, asked for when the recording is over."""
        self.endings: list[Callable[[BaseException], None]] = []
        """Who wants to see the error that ends the program."""
        self.lines: dict[tuple[str, int], Location] = {}
        """Where the nodes of recent graphs were made."""
        self.writes: deque[tuple[Location, str, tuple[int, ...]]] = deque(maxlen=500)
        """Recent in-place operations: where, which, on what shape."""
        self.retained: dict[Location, list[set[tuple[str, int]]]] = {}
        """Operations of the graphs that the first backwards were told to keep, by the backward's line."""
        self.gaps: dict[str, str] = {}
        """Topics that could not be observed, and why."""

        self.sampler: Callable[[], object] = lambda: None
        """What chose the latest batch, held weakly."""
        self.steps_under_way: list[int] = []
        """Identities of optimizers whose step runs now, outermost first: one may wrap another."""

    def wrap(
        self,
        owner: Any,
        name: str,
        *,
        scope: str,
        before: Callable[..., object] | None = None,
        after: Callable[..., object] | None = None,
    ) -> None:
        original = vars(owner)[name]
        wrapped = observed(original, self.recorder, scope=scope, before=before, after=after)
        self.patches.replace(owner, name, wrapped)

    def catch_up(self) -> None:
        """Put on the tape what was done by hand since the last observed call."""
        if self.recorder.full or not may_compute():
            return
        for actor, kind in self.gradients.unaccounted():
            self.recorder.emit(kind, actor, frozenset({actor}), by="hand")

    def settle(self, after: EventKind, concerned: Collection[str] = ()) -> frozenset[str]:
        """The call is over: whatever differs from now on was done by somebody else."""
        if self.recorder.full or not may_compute():
            return frozenset()
        return self.gradients.mark(after, concerned)

    def introduce(self, thing: object, kind: ActorKind, **about: Any) -> str | None:
        """Make a new actor of `thing` where the user builds it, unless it is known or the tape is full."""
        known = self.actors.id_of(thing)
        if known is not None or self.recorder.full:
            return known
        frame = builder(self.recorder.places.frames())
        built: Location | None = self.recorder.places.of(frame) if frame is not None else None
        name = assigned_name(self.recorder.places.frames()) or type(thing).__name__
        actor = self.actors.adopt(thing, kind, name, built, **about)
        self.recorder.emit(EventKind.BUILD, actor, where=built)
        return actor

    def optimizer(self, thing: object) -> str | None:
        """The id of an optimizer, met here for the first time perhaps."""
        known = self.actors.id_of(thing)
        if known is not None or self.recorder.full:
            return known
        return self.actors.adopt(thing, ActorKind.OPTIMIZER, type(thing).__name__)


def remember_recent(
    memory: dict[tuple[str, int], Any], key: tuple[str, int], value: Any, *, most: int = 64
) -> None:
    """A small memory that forgets the oldest."""
    memory.pop(key, None)
    memory[key] = value
    if len(memory) > most:
        del memory[next(iter(memory))]
