"""A tape seen as updates: what happened to one optimizer from one step to the next."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from gradclinic.facts.location import Location
from gradclinic.facts.ranks import DISTRIBUTED
from gradclinic.facts.tape import Event, EventKind, Tape
from gradclinic.frozen import sealed

ACCUMULATION = "accumulation"
BROUGHT = "brought"
"""An attribute of steps through a scaler: their gradients come from elsewhere, and with its scale."""


@sealed
class Update:
    """The events after the previous step of `optimizer` up to and including `step`."""

    optimizer: str
    index: int
    events: tuple[Event, ...]

    @property
    def step(self) -> Event:
        return self.events[-1]

    def of_kind(self, *kinds: EventKind) -> tuple[Event, ...]:
        return tuple(event for event in self.events if event.kind in kinds)

    @property
    def backwards(self) -> tuple[Event, ...]:
        return self.of_kind(EventKind.BACKWARD)

    @property
    def gradients(self) -> tuple[Event, ...]:
        """What puts a gradient there: backward, or a hand that writes one."""
        return self.of_kind(EventKind.BACKWARD, EventKind.GRAD_WRITE)

    @property
    def opaque(self) -> bool:
        """Something in here could not be followed, so nothing can be said of what is missing."""
        return any(event.kind is EventKind.OPAQUE for event in self.events)

    def micro_batches(self) -> tuple[Event, ...]:
        """The backwards of an accumulation window: one call site, new data before each repeat.

        Empty when this is not one: several losses of one batch, a single backward, or a closure
        that the step itself evaluates again and again.
        """
        backwards = self.backwards
        sites = {event.where for event in backwards}
        if len(backwards) < 2 or len(sites) != 1 or any(event.attrs.get("in_step") for event in backwards):
            return ()
        batches = [event.index for event in self.events if event.brings_data]
        for earlier, later in pairwise(backwards):
            if not any(earlier.index < batch < later.index for batch in batches):
                return ()
        return backwards


def updates(tape: Tape, optimizer: str) -> tuple[Update, ...]:
    known = tape.derived.get(optimizer)
    if known is None:
        known = tape.derived[optimizer] = _updates(tape, optimizer)
    return known


def _updates(tape: Tape, optimizer: str) -> tuple[Update, ...]:
    done: list[Update] = []
    pending: list[Event] = []
    for event in tape.timeline(optimizer):
        pending.append(event)
        if event.kind is EventKind.STEP and event.optimizers and optimizer in event.optimizers:
            done.append(Update(optimizer, len(done), tuple(pending)))
            pending = []
    return tuple(done)


def features(tape: Tape) -> frozenset[str]:
    """What this tape can be asked about: its events and actors, whether it accumulates, is distributed."""
    actors = {actor.kind for actor in tape.actors.values()}
    accumulates = any(u.micro_batches() for optimizer in tape.optimizers for u in updates(tape, optimizer))
    distributed = any(actor.attrs.get("ranks") for actor in tape.actors.values())
    named = {ACCUMULATION: accumulates, DISTRIBUTED: distributed}
    return frozenset[str](tape.kinds) | actors | {name for name, has in named.items() if has}


def surely(event: Event, tape: Tape, optimizer: str) -> bool:
    """True when the event concerns this optimizer beyond doubt, not only perhaps."""
    if event.optimizers is None:
        return tape.optimizers == (optimizer,)
    return optimizer in event.optimizers


def serves_another(tape: Tape, update: Update, backward: Event) -> bool:
    """Whether another optimizer steps on it before anything else happens to the gradients of this one:
    `for optimizer, loss in zip(optimizers, losses)`, where the loss of one reaches what the other holds."""
    after = update.of_kind(EventKind.ZERO_GRAD, EventKind.BACKWARD, EventKind.STEP)
    following = next(event.index for event in after if event.index > backward.index)
    return any(
        event.kind is EventKind.STEP and event.actor != update.optimizer
        for event in tape.events[backward.index : following]
    )


def accumulated(tape: Tape, update: Update) -> tuple[Event, ...]:
    """The micro-batches of a window, all of which are for its own step."""
    backwards = update.micro_batches()
    return () if any(serves_another(tape, update, event) for event in backwards) else backwards


def tail(tape: Tape, optimizer: str) -> tuple[Event, ...]:
    """What came after the last step."""
    timeline = tape.timeline(optimizer)
    done = updates(tape, optimizer)
    return timeline[sum(len(update.events) for update in done) :]


def cadence(events: tuple[Event, ...]) -> Iterator[tuple[Location, list[Event]]]:
    """Events by the place that made them, in order of first appearance."""
    by_place: dict[Location, list[Event]] = {}
    for event in events:
        by_place.setdefault(event.where, []).append(event)
    return iter(by_place.items())
