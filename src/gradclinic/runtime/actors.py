"""The objects events happen to: known by identity, held weakly, called what the user calls them."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import torch

from gradclinic.facts import Actor, ActorKind, Location


class Actors:
    def __init__(self) -> None:
        self.known: dict[str, Actor] = {}
        self._ids: dict[int, str] = {}
        self._objects: dict[str, weakref.ref[Any]] = {}
        self._made: dict[ActorKind, int] = {}

    def id_of(self, thing: object) -> str | None:
        return self._ids.get(id(thing))

    def adopt(
        self,
        thing: object,
        kind: ActorKind,
        name: str,
        built: Location | None = None,
        of: Iterable[str] = (),
        attrs: Mapping[str, Any] | None = None,
    ) -> str:
        """Make `thing` an actor, once."""
        known = self.id_of(thing)
        if known is not None:
            return known
        number = self._made[kind] = self._made.get(kind, 0) + 1
        actor = f"{kind.value}-{number}"
        address = id(thing)
        self._ids[address] = actor
        self._objects[actor] = weakref.ref(thing, lambda _: self._forget(address, actor))
        self.known[actor] = Actor(
            actor, kind, name, type(thing).__name__, built, tuple(of), dict(attrs or {})
        )
        return actor

    def relate(self, actor: str, others: Iterable[str]) -> None:
        """`actor` turned out to act on these too."""
        known = self.known[actor]
        new = tuple(other for other in others if other not in known.of)
        if new:
            self.known[actor] = replace(known, of=known.of + new)

    def describe(self, actor: str, attrs: Mapping[str, Any]) -> None:
        """More became known of `actor`."""
        known = self.known[actor]
        self.known[actor] = replace(known, attrs={**known.attrs, **attrs})

    def optimizers(self) -> Iterator[tuple[str, torch.optim.Optimizer]]:
        """Those that still exist."""
        for actor, reference in list(self._objects.items()):
            thing = reference()
            if isinstance(thing, torch.optim.Optimizer):
                yield actor, thing

    def models(self) -> Iterator[tuple[str, torch.nn.Module]]:
        """Those that still exist, by the id of the actor."""
        for actor, reference in list(self._objects.items()):
            thing = reference()
            if isinstance(thing, torch.nn.Module):
                yield actor, thing

    def holding(self, parameters: Iterable[torch.Tensor]) -> frozenset[str]:
        """Optimizers that hold any of these parameters."""
        wanted = {id(parameter) for parameter in parameters}
        return frozenset(
            actor
            for actor, optimizer in self.optimizers()
            if any(id(parameter) in wanted for parameter in parameters_of(optimizer))
        )

    def within(self, parameters: Iterable[torch.Tensor]) -> frozenset[str]:
        """Optimizers all of whose parameters are among these."""
        given = {id(parameter) for parameter in parameters}
        return frozenset(
            actor
            for actor, optimizer in self.optimizers()
            if all(id(parameter) in given for parameter in parameters_of(optimizer))
        )

    def _forget(self, address: int, actor: str) -> None:
        self._objects.pop(actor, None)
        if self._ids.get(address) == actor:
            del self._ids[address]


def parameters_of(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]
