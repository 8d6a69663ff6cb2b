"""The tape: what a training loop did, in order, whichever side recorded it.

`static` writes a tape by walking the source, `runtime` by watching the program. A rule reads
the tape and cannot tell which it was, except through `Tape.source` for its wording.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from enum import StrEnum
from functools import cached_property
from typing import Any

from gradclinic.facts.location import Location
from gradclinic.facts.source import Source
from gradclinic.frozen import sealed


class EventKind(StrEnum):
    BUILD = "build"
    """An optimizer, scaler or schedule was constructed (`actor` names it)."""
    EPOCH_BEGIN = "epoch"
    """A pass over the data begins. `loop` tells passes over different data apart; `known` is True
    when the number of batches on the tape is the real one, not a stand-in for an unknown length."""
    BATCH = "batch"
    """The next micro-batch was fetched."""
    EPOCH_END = "epoch end"
    """The pass ended because the data did, not by a `break`."""
    ZERO_GRAD = "zero_grad"
    FORWARD = "forward"
    """Model `actor` was called; `fresh` is True when its input is other data than the time before.
    `bypasses`: the id of the model that wraps it for distributed training and was gone around.
    `precision`: that of the autocast block around it. From source also `graph`, False when gradients
    are off, and `training`, the mode as far as known, `set_at` the call that set it."""
    LOSS = "loss"
    """A loss was computed; `reduction`, `valid` (elements averaged over) and `value` where known."""
    BACKWARD = "backward"
    """`scaled`: divided for accumulation (True, False, or None when unsure). `scaler`: the id of the
    scaler whose scale the gradients carry, absent when they carry none. `in_step`: True when a
    step runs it, as its closure. `reduces`: the id of the model whose gradients ranks exchange
    in it, absent when they do not. `autocast`: True inside such a block, False in one that is off.
    `factor`: the number the loss was multiplied by, None when unsure."""
    GRAD_WRITE = "grad write"
    """Gradients were set or changed by hand (`p.grad = …`, `p.grad.div_(…)`)."""
    UNSCALE = "unscale"
    """Without an `actor`: a call that was given the scaler and not followed may have done so, or the step
    that follows does so itself before it calls anyone."""
    CLIP = "clip"
    """`by_value`: True when each value is limited by itself; `cosine`, then, between the gradient
    before and after, where it was measured."""
    WEIGHT_WRITE = "weight write"
    """Parameters were changed by hand (`p.sub_(lr * p.grad)`), not by an optimizer."""
    STEP = "step"
    """`scaler`: the scaler it went through, if any; `skipped`: True when that scaler skipped it;
    `refused`: True when it raised an error, for it had stepped already and not been updated since."""
    SCALER_UPDATE = "scaler update"
    SCHEDULE = "schedule"
    """Schedule `actor` advanced by one tick. From source, as of a step: `later`, what it waits for in the
    first iterations. `explicit`: an epoch number was passed to step().
    `guarded`: it runs only if the scaler did not skip. `looped`: it stands in a loop that trains.
    `prepared`: Accelerate advances it, once for every rank."""
    MODE = "mode"
    """`attrs['training']` is what train() or eval() set on model `actor`."""
    FREEZE = "freeze"
    """Parameters stopped requiring a gradient; `keys`: of which models and parts, when of all of them."""
    REPLACE = "replace"
    """Something of a model an optimizer may hold was replaced: `part`, as the user writes it; `keys` of
    what took its place and `old` of what it took the place of or was put into."""
    SKIP = "skip"
    """From source: what steps is left out of this iteration, for the size its gradients have."""
    SAVE = "save"
    OPAQUE = "unknown call"
    """Something that could not be followed may have done anything to `optimizers`. `prepares`: by its name
    it does not train, so before the training it has stepped nothing. `keeps_scale`: whatever it does, it
    takes no scale out of gradients."""


class ActorKind(StrEnum):
    MODEL = "model"
    OPTIMIZER = "optimizer"
    SCALER = "scaler"
    SCHEDULE = "scheduler"


@sealed
class Actor:
    """An object that events happen to."""

    id: str
    kind: ActorKind
    name: str
    """What the user calls it, as far as known: `optimizer`, `self.opt_g`."""
    type: str = ""
    """The class as written or imported: `AdamW`."""
    built: Location | None = None
    of: tuple[str, ...] = ()
    """Ids it acts on: a schedule's optimizer, an optimizer's models."""
    attrs: Mapping[str, Any] = field(default_factory=dict)
    """Of a model that ranks train together: `ranks`, their number; `gradient_bytes`, what they
    exchange; `sharded`, True when each holds only a share of it. Of an optimizer: `weight_decay`, the
    largest of its groups; `inertia`, True when it moves a parameter whose gradient is zero. Of any, from
    source: `contained`, True when nothing but the function that was walked ever had it; `escapes`, True when
    code out of sight can reach it."""

    def acts_on_all_of(self, models: frozenset[str]) -> bool:
        """Whether these models, or what they are parts of, were given to it."""
        return bool(models) and all(any(_belongs(one, to) for to in self.of) for one in models)

    def acts_on_any_of(self, models: frozenset[str]) -> bool:
        return any(_belongs(one, to) for one in models for to in self.of)

    def acts_within(self, models: frozenset[str]) -> bool:
        """Whether nothing was given to it but these models and their parts."""
        return bool(self.of) and all(any(_belongs(one, to) for to in models) for one in self.of)


def _belongs(part: str, whole: str) -> bool:
    return part == whole or part.startswith(whole + ".")


@sealed
class Event:
    kind: EventKind
    where: Location
    actor: str | None = None
    """The object the call was made on or about."""
    optimizers: frozenset[str] | None = frozenset()
    """Optimizers whose gradients or weights it concerns; None when that is not known: maybe any."""
    attrs: Mapping[str, Any] = field(default_factory=dict)
    index: int = 0
    at: float | None = field(default=None, compare=False)
    """Seconds on a clock that only goes forward, where a run recorded it."""

    @property
    def brings_data(self) -> bool:
        return self.kind is EventKind.BATCH or (
            self.kind is EventKind.FORWARD and self.attrs.get("fresh") is True
        )

    def concerns(self, optimizer: str) -> bool:
        return self.optimizers is None or optimizer in self.optimizers


@sealed
class Tape:
    source: Source
    events: tuple[Event, ...]
    actors: Mapping[str, Actor] = field(default_factory=dict)
    complete: bool = True
    """False when the recording stopped before the program did: absence then proves nothing."""
    totals: Mapping[tuple[EventKind, str], int] = field(default_factory=dict)
    """How often each kind happened to each actor over the whole run. `events` may hold only
    the beginning of a long one."""

    def __post_init__(self) -> None:
        numbered = tuple(
            event
            if event.index == i
            else Event(event.kind, event.where, event.actor, event.optimizers, event.attrs, i, event.at)
            for i, event in enumerate(self.events)
        )
        object.__setattr__(self, "events", numbered)

    def of_kind(self, *kinds: EventKind) -> Iterator[Event]:
        return (event for event in self.events if event.kind in kinds)

    def of_actor(self, actor: str, *kinds: EventKind) -> Iterator[Event]:
        return (event for event in self.events if event.actor == actor and event.kind in kinds)

    def count(self, kind: EventKind, actor: str = "") -> int:
        """How often `kind` happened (to `actor`), beyond the end of a shortened tape too."""
        seen = sum(1 for e in self.events if e.kind is kind and (not actor or e.actor == actor))
        return max(seen, self.totals.get((kind, actor), 0))

    def timeline(self, optimizer: str) -> tuple[Event, ...]:
        """Every event that concerns, or may concern, this optimizer, with the beat of the loop."""
        return self._timelines.get(optimizer, ())

    @cached_property
    def kinds(self) -> frozenset[EventKind]:
        return frozenset(event.kind for event in self.events)

    @cached_property
    def optimizers(self) -> tuple[str, ...]:
        return tuple(id for id, actor in self.actors.items() if actor.kind is ActorKind.OPTIMIZER)

    @cached_property
    def derived(self) -> dict[str, Any]:
        """What readers of the tape made of it and others will ask for again, by optimizer."""
        return {}

    @cached_property
    def _timelines(self) -> dict[str, tuple[Event, ...]]:
        beat = {
            EventKind.EPOCH_BEGIN,
            EventKind.BATCH,
            EventKind.EPOCH_END,
            EventKind.FORWARD,
            EventKind.LOSS,
        }
        users = self._users
        return {
            optimizer: tuple(
                event
                for event in self.events
                if event.kind in beat
                or (event.concerns(optimizer) and optimizer in users.get(event.index, (optimizer,)))
            )
            for optimizer in self.optimizers
        }

    def shows_all_of(self, actor: Actor) -> bool:
        """Whether what is not on the tape never happened to `actor`."""
        return (self.complete or actor.attrs.get("contained") is True) and not actor.attrs.get("escapes")

    @cached_property
    def _users(self) -> dict[int, frozenset[str | None]]:
        """Who uses the gradients of a backward, or of a clip, of which it is not known whose they are.

        Where each of its calls is stepped on before the next backward, as where one function trains several
        optimizers in turn, they are those who step.
        """
        found: dict[int, frozenset[str | None]] = {}
        left: set[Location] = set()
        steps: frozenset[str | None] = frozenset()
        for event in reversed(self.events):
            unknown = event.optimizers is None and event.kind in (EventKind.BACKWARD, EventKind.CLIP)
            if unknown and steps:
                found[event.index] = steps
            elif unknown:
                left.add(event.where)
            if event.kind is EventKind.STEP:
                steps |= {event.actor}
            elif event.kind is EventKind.BACKWARD:
                steps = frozenset()
        return {index: steps for index, steps in found.items() if self.events[index].where not in left}

    def name(self, actor: str | None) -> str:
        """What the user calls this actor; in source a model is known by its name alone."""
        known = self.actors.get(actor or "")
        return known.name if known else actor or "?"
