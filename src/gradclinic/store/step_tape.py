"""One update of the tape, to be drawn as a timeline."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gradclinic.facts import Event, Observation, Tape, updates

_TYPICAL = 13
"""The first updates and every tenth are looked at closely, which takes time; this one is like most."""
_MOST = 200


def one_step(observations: Iterable[Observation]) -> dict[str, Any] | None:
    """The events of one update, with milliseconds since the first of them; None if there was none."""
    for tape in _tapes(observations):
        made = [updates(tape, optimizer) for optimizer in tape.optimizers]
        longest = max(made, key=len, default=())
        if longest:
            update = longest[min(_TYPICAL, len(longest) - 1)]
            events = update.events[-_MOST:]
            began = events[0].at or 0.0
            return {"step": update.index, "events": [_shown(event, tape, began) for event in events]}
    return None


def _tapes(observations: Iterable[Observation]) -> Iterable[Tape]:
    return (
        fact
        for observation in observations
        for case in observation.cases
        for fact in case
        if isinstance(fact, Tape)
    )


def _shown(event: Event, tape: Tape, began: float) -> dict[str, Any]:
    return {
        "kind": event.kind.value,
        "actor": tape.name(event.actor) if event.actor else "",
        "place": str(event.where),
        "ms": None if event.at is None else round(1000 * (event.at - began), 4),
    }
