"""The chain of operations behind a loss, in words."""

from __future__ import annotations

from gradclinic.facts import LossCall


def chain_seen(call: LossCall) -> str:
    """`linear -> softmax:12 -> cross_entropy:30`"""
    ops = [f"{op.name}:{op.where.line}" if op.where else op.name for op in reversed(call.made_by[:4])]
    return " -> ".join([*ops, f"{call.loss}:{call.where.line}"])
