"""The log of an execution, as facts about losses."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from gradclinic.facts import Location, LossCall, Op
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
    for calls in sites.values():
        yield from _by_model(_that_train(calls))
    yield from ((call,) for call in log.chosen.values())
    passed = NO_IDS.union(*(use.flow.nodes for use in log.uses if use.whole))
    edges = {edge.where: edge for edge, node in log.edges if node in passed}
    yield from ((edge,) for edge in edges.values())
    yield from ((use,) for use in {use.used: use for use in log.softmax_uses}.values())


def _that_train(calls: list[LossCall]) -> tuple[LossCall, ...]:
    """Without the ways an evaluation takes, if a training takes others."""
    return tuple(call for call in calls if call.trains) or tuple(calls)


def _by_model(calls: tuple[LossCall, ...]) -> Iterable[tuple[LossCall, ...]]:
    """Models that all end alike are each to be told of, where they do so; else only what holds for all is."""
    ends = {_kind(call.last_op) for call in calls}
    if len(ends) > 1 or None in ends:
        return [calls]
    models: dict[Location | None, list[LossCall]] = {}
    for call in calls:
        models.setdefault(call.last_op.where if call.last_op else None, []).append(call)
    return [tuple(of_one) for of_one in models.values()]


def _kind(op: Op | None) -> tuple[object, ...] | None:
    return (op.name, op.dim, op.implicit_dim) if op is not None else None
