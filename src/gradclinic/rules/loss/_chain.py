"""The chain of operations behind a loss, in words."""

from __future__ import annotations

from gradclinic.facts import Location, LossCall, Op


def chain_seen(call: LossCall) -> str:
    """`linear:11 -> softmax:12 -> cross_entropy:30`; of another file, `linear -> softmax at net.py:12`."""
    told = place_of(call)
    ops = [_place(op, told, last=op is call.last_op) for op in reversed(call.made_by[:4])]
    loss = (
        f"{call.loss}:{call.where.line}" if told.path == call.where.path else f"{call.loss} at {call.where}"
    )
    return " -> ".join([*ops, loss])


def _place(op: Op, told: Location, *, last: bool) -> str:
    if op.where is None:
        return op.name
    if op.where.path == told.path:
        return f"{op.name}:{op.where.line}"
    return f"{op.name} at {op.where}" if last else op.name


def where_to_mend(call: LossCall, op: Op) -> str:
    """` at line 12`, or ` at net.py:12` of another file than the one that is told about."""
    if op.where is None:
        return ""
    return f" at line {op.where.line}" if op.where.path == place_of(call).path else f" at {op.where}"


def place_of(call: LossCall) -> Location:
    """Where to tell of it."""
    return call.told_at or call.where


def named(call: LossCall, usual: str) -> str:
    """What the loss is called in a sentence; told elsewhere, with its place."""
    return f"{call.loss} at {call.where}" if call.told_at else usual
