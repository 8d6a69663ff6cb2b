"""One value for what two branches left in a name, where that is an optimizer, a scaler or a schedule."""

from __future__ import annotations

from itertools import islice

from gradclinic.static.values import NONE, ActorRef, Value, join, same
from gradclinic.static.walk import Walk


def joined(walk: Walk, one: Value | None, other: Value | None, path: str, known: int) -> Value:
    """What either branch left; of actors, all but the first `known` were built in one of them."""
    if isinstance(one, ActorRef) and isinstance(other, ActorRef):
        one.id, other.id = walk.recorder.now(one.id), walk.recorder.now(other.id)
        if one.id == other.id:
            return one
        new = set(islice(walk.recorder.actors, known, None))
        if one.kind is other.kind and {one.id, other.id} & new:
            kept, gone = (one, other) if other.id in new else (other, one)
            walk.recorder.merge(kept.id, gone.id)
            gone.id = kept.id
            return kept
        walk.recorder.escapes(one.id)
        walk.recorder.escapes(other.id)
    for actor, otherwise in ((one, other), (other, one)):
        if isinstance(actor, ActorRef) and otherwise is not None and same(otherwise, NONE):
            walk.recorder.escapes(actor.id)
            return ActorRef(actor.id, actor.kind, built=False, prepared=actor.prepared)
    return join(one, other, path)
