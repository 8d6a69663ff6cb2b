"""How order rules show what they saw."""

from __future__ import annotations

from collections.abc import Iterable

from gradclinic.facts import Event, EventKind

MOST_EVENTS_SHOWN = 8


def order_seen(events: Iterable[Event], *kinds: EventKind) -> str:
    """`backward:40 step:41 clip:42`: the events of these kinds, in order, by line."""
    shown = [f"{event.kind.replace(' ', '-')}:{event.where.line}" for event in events if event.kind in kinds]
    if len(shown) > MOST_EVENTS_SHOWN:
        shown = [*shown[:MOST_EVENTS_SHOWN], "…"]
    return " ".join(shown)
