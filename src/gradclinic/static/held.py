"""What values hold: the models, optimizers and parameters that a call is given with them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from gradclinic.facts import ActorKind
from gradclinic.static.abilities import ACTS
from gradclinic.static.values import (
    ActorRef,
    Bound,
    Instance,
    Keys,
    Map,
    Model,
    Params,
    Partial,
    Seq,
    Unknown,
    Value,
)

_DEEPEST_LOOK = 3
_MOST_PARTS = 300
_HOLDERS = frozenset({Seq, Map, Partial, Instance, Bound})


def parts(values: Iterable[Value | None]) -> list[Value]:
    """The values and what they hold, as far as anyone would look."""
    plain = [value for value in values if value is not None]
    for value in plain:
        kind = type(value)
        if kind in _HOLDERS or (kind is Unknown and value.holds):  # type: ignore[attr-defined]
            return list(islice(_parts(plain, _DEEPEST_LOOK), _MOST_PARTS))
    return plain


def _parts(values: Iterable[Value | None], depth: int) -> Iterable[Value]:
    for value in values:
        if value is None:
            continue
        yield value
        if not depth:
            continue
        if isinstance(value, Seq):
            yield from _parts(value.items, depth - 1)
        elif isinstance(value, (Map, Partial)):
            held = value.items.values() if isinstance(value, Map) else (value.func, *value.args)
            yield from _parts(list(held), depth - 1)
        elif isinstance(value, Instance):
            yield from _parts([*value.attrs.values(), value.model], depth - 1)
        elif isinstance(value, Unknown):
            yield from _parts(value.holds, depth - 1)
        elif isinstance(value, Bound) and value.attr in ACTS:
            yield value.base  # who has `optimizer.zero_grad` may clear


def optimizers_in(values: Iterable[Value | None]) -> Keys:
    return optimizers_among(parts(values))


def optimizers_among(known: list[Value]) -> Keys:
    found: set[str] = set()
    for part in known:
        if isinstance(part, ActorRef) and part.kind is ActorKind.OPTIMIZER:
            found.add(part.id)
        elif isinstance(part, Params):
            found |= part.optimizers
    return frozenset(found)


def models_in(values: Iterable[Value | None]) -> Keys | None:
    """Models among the values; None when there are parameters of an unknown one."""
    return models_among(parts(values))


def models_among(known: list[Value]) -> Keys | None:
    found: set[str] = set()
    for part in known:
        if isinstance(part, Model):
            found |= part.keys
        elif isinstance(part, Params):
            if part.models is None:
                return None
            found |= part.models
    return frozenset(found)


def items_by_name(value: Value) -> dict[str, Value]:
    """Those of a dictionary, or of what is not known those it was given: `batch["scale"] = ...`."""
    if isinstance(value, Map):
        return {key: item for key, item in value.items.items() if isinstance(key, str)}
    attrs = value.attrs if isinstance(value, Unknown) else {}
    return {key[2:-2]: item for key, item in attrs.items() if key.startswith("['") and key.endswith("']")}
