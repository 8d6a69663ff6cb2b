"""The log of an execution, as facts about losses."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from gradclinic.facts import Location, LossCall
from gradclinic.static.flow.machine import Log
from gradclinic.static.flow.values import NO_IDS


def loss_cases(log: Log) -> Iterable[tuple[object, ...]]:
    """One case for each call site; its alternatives are the ways it was reached."""
    trained = NO_IDS.union(*(use.flow.losses for use in log.uses if use.whole and not use.flow.divided))
    sites: dict[Location, list[LossCall]] = {}
    for id, call in log.losses.items():
        # Whether a sum trains undivided is worth telling only where backward is in sight.
        undivided = call.reduction != "sum" or (id in trained and not log.rescales)
        sites.setdefault(call.where, []).append(replace(call, divided=not undivided))
    yield from (_that_train(calls) for calls in sites.values())
    yield from ((call,) for call in log.chosen.values())
    passed = NO_IDS.union(*(use.flow.nodes for use in log.uses if use.whole))
    edges = {edge.where: edge for edge, node in log.edges if node in passed}
    yield from ((edge,) for edge in edges.values())
    yield from ((use,) for use in {use.used: use for use in log.softmax_uses}.values())


def _that_train(calls: list[LossCall]) -> tuple[LossCall, ...]:
    """Without the ways an evaluation takes, if a training takes others."""
    return tuple(call for call in calls if call.trains) or tuple(calls)
