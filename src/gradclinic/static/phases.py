"""Loops that train in one phase and evaluate in another, by a flag: passes of the second kind."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gradclinic.facts import Event, EventKind, Tape
from gradclinic.static import words

_TRAINS = (EventKind.BACKWARD, EventKind.STEP)


def held_out_forwards(tape: Tape) -> dict[int, str]:
    """The forwards in passes over held-out data that train nothing, though an earlier pass of the same loop
    goes backward from the same place; each with the name of the data."""
    found: dict[int, str] = {}
    trained: dict[object, set[tuple[object, object]]] = {}
    for begin, events in _passes(tape):
        places = trained.setdefault(begin.attrs["loop"], set())
        forwards = [event for event in events if event.kind is EventKind.FORWARD]
        if any(event.kind in _TRAINS for event in events):
            places |= {(event.actor, event.where) for event in forwards if event.attrs["graph"]}
            continue
        over = str(begin.attrs.get("over", ""))
        seen_through = not any(event.kind is EventKind.OPAQUE for event in events)
        if seen_through and any(words.HELD_OUT.search(word) for word in re.findall(r"\w+", over)):
            found |= {event.index: over for event in forwards if (event.actor, event.where) in places}
    return found


def _passes(tape: Tape) -> Iterator[tuple[Event, tuple[Event, ...]]]:
    """Each beginning of a pass that comes to its end, with what happens in between."""
    begun: dict[object, Event] = {}
    for event in tape.events:
        if event.kind is EventKind.EPOCH_BEGIN:
            begun[event.attrs["loop"]] = event
        elif event.kind is EventKind.EPOCH_END:
            begin = begun.pop(event.attrs["loop"], None)
            if begin is not None:
                yield begin, tape.events[begin.index + 1 : event.index]
