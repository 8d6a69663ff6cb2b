"""The chain of operations behind a loss, in words."""

from __future__ import annotations

from gradclinic.facts import Location, LossCall


def chain_seen(call: LossCall) -> str:
    """`linear -> softmax:12 -> cross_entropy:30`"""
    ops = [f"{op.name}:{op.where.line}" if op.where else op.name for op in reversed(call.made_by[:4])]
    loss = f"{call.loss} at {call.where}" if call.told_at else f"{call.loss}:{call.where.line}"
    return " -> ".join([*ops, loss])


def place_of(call: LossCall) -> Location:
    """Where to tell of it."""
    return call.told_at or call.where


def named(call: LossCall, usual: str) -> str:
    """What the loss is called in a sentence; told elsewhere, with its place."""
    return f"{call.loss} at {call.where}" if call.told_at else usual
