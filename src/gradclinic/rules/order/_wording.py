"""How order rules show what they saw."""

from __future__ import annotations

from collections.abc import Iterable

from gradclinic.facts import Event, EventKind, Location

MOST_EVENTS_SHOWN = 8


def order_seen(events: Iterable[Event], *kinds: EventKind) -> str:
    """`backward:40 step:41 clip:42`: the events of these kinds, in order, by line."""
    shown = [
        f"{event.kind.replace(' ', '-')}:{_line(event.where)}" for event in events if event.kind in kinds
    ]
    if len(shown) > MOST_EVENTS_SHOWN:
        shown = [*shown[:MOST_EVENTS_SHOWN], "…"]
    return " ".join(shown)


def _line(where: Location) -> str:
    """`42`; `3:42` in the third cell of a notebook."""
    return str(where.line) if where.cell is None else f"{where.cell}:{where.line}"
