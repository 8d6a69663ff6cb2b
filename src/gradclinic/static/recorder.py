"""The tape while it is being written: actors come to light, and events wait for their optimizers.

Which optimizers a backward concerns is known only at the end, when all optimizers of the walk have been seen.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any

from gradclinic.facts import Actor, ActorKind, Event, EventKind, Location, Source, Tape
from gradclinic.frozen import record
from gradclinic.static.values import NOTHING, Keys, overlap

UNLIKELY = "unlikely"
"""An attribute of calls that were not followed, and that hide a training only if it must be somewhere."""

HELD_BY = "held_by"
"""An attribute of forwards: the optimizers that hold the model, whoever else may."""

OF_THIS_RUN = "of this run"
"""Of a clear: the function that is running made the model itself, and once."""
Call = tuple[ast.AST | None, ast.AST]
"""A function, if it was given no model that others have made, and where it was called."""


@record
class Draft:
    kind: EventKind
    where: Location
    actor: str | None
    models: Keys | None
    """Models it concerns; None when that is not known."""
    optimizers: Keys
    """Optimizers it surely concerns."""
    attrs: Mapping[str, Any]


@record
class Recorder:
    drafts: list[Draft] = field(default_factory=list)
    actors: dict[str, Actor] = field(default_factory=dict)
    became: dict[str, str] = field(default_factory=dict)
    """Of two that turned out to be one, the other: values may still speak of the first."""
    muted: int = 0
    made: dict[str, list[tuple[Call, ...]]] = field(default_factory=dict)
    """The models that functions have made, each with the calls that led there."""
    alike: set[str] = field(default_factory=set)
    """Those of which there are several, made by several calls: which of them is meant is not followed."""
    counts_batches: bool = False
    """What by its name is a number of updates was taken for one of batches."""

    def emit(
        self,
        kind: EventKind,
        where: Location,
        *,
        actor: str | None = None,
        models: Keys | None = NOTHING,
        optimizers: Keys = NOTHING,
        attrs: Mapping[str, object] | None = None,
    ) -> None:
        if not self.muted:
            if self.became:
                actor = actor and self.now(actor)
                optimizers = frozenset(map(self.now, optimizers))
            self.drafts.append(Draft(kind, where, actor, models, optimizers, attrs or {}))

    def actor(
        self,
        kind: ActorKind,
        name: str,
        *,
        type: str = "",
        built: Location | None = None,
        of: Keys = NOTHING,
        attrs: Mapping[str, object] | None = None,
    ) -> str:
        """The id of a new actor. One that is built again at the same place is another one."""
        place = f"@{built.line}:{built.column}" if built else ""
        id = first = f"{kind}:{name}{place}"
        again = 1
        while built and (id in self.actors or id in self.became):
            again += 1
            id = f"{first}#{again}"
        self.actors[id] = Actor(id, kind, name, type, built, tuple(sorted(map(self.now, of))), attrs or {})
        return id

    def now(self, id: str) -> str:
        """What an actor is known by since it turned out to be one with another."""
        while id in self.became:
            id = self.became[id]
        return id

    def known(self, id: str) -> Actor:
        return self.actors[self.now(id)]

    def make(self, key: str, calls: tuple[Call, ...]) -> str:
        """A function makes another model wherever it is called from."""
        known = self.made.setdefault(key, [])
        if calls not in known:
            known.append(calls)
        if len(known) > 1:
            self.alike.add(key)
        return key

    def are_of(self, models: Keys, calls: tuple[Call, ...]) -> bool:
        """Whether each is the only one made in these calls, and others like it are of earlier runs."""
        for ways in (self.made.get(key, []) for key in models):
            others = [way for way in ways if way[: len(calls)] != calls]
            if len(ways) - len(others) != 1 or not all(_is_earlier(way, calls) for way in others):
                return False
        return True

    def extend(self, id: str, of: Keys) -> None:
        actor = self.known(id)
        self.actors[actor.id] = replace(actor, of=tuple(sorted({*actor.of, *of})))

    def rename(self, id: str, name: str) -> None:
        id = self.now(id)
        if id in self.actors:
            self.actors[id] = replace(self.actors[id], name=name)

    def escapes(self, id: str) -> None:
        """It was put where code out of sight can reach it."""
        actor = self.known(id)
        self.actors[actor.id] = replace(actor, attrs={**actor.attrs, "escapes": True})

    def merge(self, kept: str, gone: str) -> None:
        """Two that are built in two branches under one name are one: only one of them is ever there."""
        other, one = self.actors.pop(gone), self.actors[kept]
        self.became[gone] = kept
        if one.attrs.get("kind") != other.attrs.get("kind"):
            self.actors[kept] = replace(one, attrs={**one.attrs, "or_another": True})
        self.extend(kept, frozenset(other.of))
        self.escapes(kept)
        for id, actor in self.actors.items():
            if gone in actor.of:
                self.actors[id] = replace(actor, of=tuple(sorted({kept, *actor.of} - {gone})))
        for draft in self.drafts:
            draft.actor = kept if draft.actor == gone else draft.actor
            if gone in draft.optimizers:
                draft.optimizers = draft.optimizers - {gone} | {kept}

    def contained(self, ids: Keys) -> None:
        """Nobody but the function that was walked ever had them."""
        for id in ids:
            actor = self.known(id)
            self.actors[actor.id] = replace(actor, attrs={**actor.attrs, "contained": True})

    def forget(self, kind: EventKind, *, since: int) -> None:
        """What happened on a branch that was left never comes together with what follows."""
        self.drafts[since:] = [draft for draft in self.drafts[since:] if draft.kind is not kind]

    def switch_off(self, scaler: str) -> None:
        """What went through a scaler did so untouched; of what only it can do nothing happened."""
        gone = (EventKind.UNSCALE, EventKind.SCALER_UPDATE)
        self.drafts = [draft for draft in self.drafts if draft.actor != scaler or draft.kind not in gone]
        for draft in self.drafts:
            if draft.attrs.get("scaler") == scaler:
                draft.attrs = {name: value for name, value in draft.attrs.items() if name != "scaler"}

    def _acting(self) -> dict[str, Actor]:
        """Actors that were built in sight or that something happened to; a mere mention is no actor."""
        seen = {draft.actor for draft in self.drafts}
        seen.update(*(draft.optimizers for draft in self.drafts))
        kept = {id: actor for id, actor in self.actors.items() if actor.built is not None or id in seen}
        optimizers = [actor for actor in kept.values() if actor.kind is ActorKind.OPTIMIZER]
        if self.counts_batches:
            kept = {id: _of_any_length(actor) for id, actor in kept.items()}
        return {id: _paired(actor, optimizers) for id, actor in kept.items()}

    def _likely(self) -> list[Draft]:
        """What is on the tape, without calls that have nothing to hide: what they could do is in sight."""
        backwards = [draft.models for draft in self.drafts if draft.kind is EventKind.BACKWARD]
        if not backwards or not any(draft.kind is EventKind.STEP for draft in self.drafts):
            return self.drafts
        return [
            draft
            for draft in self.drafts
            if UNLIKELY not in draft.attrs
            or not any(
                models is None or draft.models is None or overlap(models, draft.models)
                for models in backwards
            )
        ]

    def _told(self, draft: Draft, optimizers: Mapping[str, Keys]) -> Mapping[str, Any]:
        """Of a forward also who holds its model for sure, where others may hold anything; of a clear, whether
        it leaves others as they are."""
        if not draft.models:
            return draft.attrs
        if draft.kind is EventKind.ZERO_GRAD and (
            _is_part(draft.models, optimizers)
            or (OF_THIS_RUN not in draft.attrs and not draft.models.isdisjoint(self.alike))
        ):
            return {**draft.attrs, "partly": True}
        if draft.kind is not EventKind.FORWARD or all(optimizers.values()):
            return draft.attrs
        held_by = frozenset(id for id, of in optimizers.items() if overlap(draft.models, of))
        return {**draft.attrs, HELD_BY: held_by} if held_by else draft.attrs

    def tape(self, *, complete: bool) -> Tape:
        actors = self._acting()
        optimizers = {
            id: frozenset(actor.of) for id, actor in actors.items() if actor.kind is ActorKind.OPTIMIZER
        }
        events = tuple(
            Event(d.kind, d.where, d.actor, _concerned(d, optimizers), self._told(d, optimizers), index)
            for index, d in enumerate(self._likely())
        )
        return Tape(Source.STATIC, events, actors, complete)


def _concerned(draft: Draft, optimizers: Mapping[str, Keys]) -> Keys | None:
    if draft.optimizers:
        return draft.optimizers
    if draft.models is not None and not draft.models:
        return NOTHING
    if len(optimizers) == 1:
        ((id, of),) = optimizers.items()
        apart = draft.models is not None and of and not overlap(draft.models, of)
        return NOTHING if apart else frozenset({id})
    if draft.models is None or not all(optimizers.values()):
        return None
    return frozenset(id for id, of in optimizers.items() if overlap(draft.models, of))


def _is_earlier(way: tuple[Call, ...], calls: tuple[Call, ...]) -> bool:
    """`train(a); train(b)`: what the first one made for itself is gone when the second one runs."""
    parted = next(((one, other) for one, other in zip(way, calls, strict=False) if one != other), None)
    return parted is not None and parted[0][0] is not None and parted[0][0] is parted[1][0]


def _is_part(models: Keys, optimizers: Mapping[str, Keys]) -> bool:
    """Whether an optimizer holds more of a model than these parts of it."""
    return any(
        any(part.startswith(f"{whole}.") for part in models)
        and not any(whole == part or whole.startswith(f"{part}.") for part in models)
        for of in optimizers.values()
        for whole in of
    )


def _of_any_length(actor: Actor) -> Actor:
    planned = actor.attrs.get("planned_unit")
    return replace(actor, attrs={**actor.attrs, "planned_unit": None}) if planned == "update" else actor


def _paired(actor: Actor, optimizers: list[Actor]) -> Actor:
    """`scheduler_d` drives `optimizer_d`: one built out of sight goes with the optimizer of its name."""
    if actor.kind is not ActorKind.SCHEDULE or actor.of:
        return actor
    alike = [optimizer.id for optimizer in optimizers if _stem(optimizer.name) == _stem(actor.name)]
    return replace(actor, of=tuple(alike)) if len(alike) == 1 else actor


def _stem(name: str) -> str:
    """`d` of `scheduler_d` and of `self.optimizer_d`."""
    return re.sub(r"lr_?|scheduler|schedule|sched|optimizer|optim|opt|_", "", name.rsplit(".", 1)[-1].lower())
