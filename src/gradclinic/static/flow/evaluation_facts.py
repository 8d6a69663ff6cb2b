"""The log of an execution, as facts about graphs that pile up while a model is evaluated."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from gradclinic.facts import KeptGraphs, Location
from gradclinic.static import words
from gradclinic.static.flow.items import is_share
from gradclinic.static.flow.kept_facts import gone_through, is_loss, lies_on
from gradclinic.static.flow.machine import Kept, Log
from gradclinic.static.syntax import names_in

_Loop = ast.For | ast.AsyncFor


def evaluation_cases(
    log: Log, tree: ast.Module, evaluated: Collection[Location]
) -> Iterator[tuple[KeptGraphs]]:
    """What an evaluation adds up or collects over all of its data, of the forwards that are `evaluated`."""
    if not evaluated:
        return
    loops = [node for node in ast.walk(tree) if isinstance(node, (ast.For, ast.AsyncFor))]
    sites: dict[Location, list[Kept]] = {}
    for kept in (*log.kept, *log.piled):
        if _is_left_alone(kept, log):
            sites.setdefault(kept.where, []).append(kept)
    for where, found in sites.items():
        if _pile_up(found) and any(_outlives_the_batch(where, forward, loops) for forward in evaluated):
            losses = all(is_loss(kept) for kept in found)
            yield (KeptGraphs(where, alive=0, of=0, outputs=not losses, evaluating=True),)


def _is_left_alone(kept: Kept, log: Log) -> bool:
    """Whether a model has made it, and no backward ever goes through it."""
    flow = kept.flow
    if flow.grad is False or flow.spared or flow.form != "tensor" or kept.holder in log.emptied:
        return False
    if not (flow.grad or flow.certain):
        return False
    if not flow.nodes & (log.run | log.layered.keys()) or flow.nodes & log.unsure:
        return False
    # Of what a model out of sight gives beside its output, some are whole numbers: masks, types, lengths.
    if not (flow.known or is_loss(kept)) and any(map(is_share, flow.nodes)):
        return False
    return not any(gone_through(flow, use.flow, log) or flow.nodes & use.flow.nodes for use in log.uses)


def _pile_up(found: list[Kept]) -> bool:
    first = found[0]
    return any(kept.flow.nodes != first.flow.nodes and lies_on(kept, first) for kept in found[1:])


def _outlives_the_batch(where: Location, forward: Location, loops: list[_Loop]) -> bool:
    """Whether the loops over the data, which the forward is in too, leave alone what it is kept by."""
    if (where.path, where.function) != (forward.path, forward.function):
        return False
    around = [loop for loop in loops if _has(loop, where.line) and _has(loop, forward.line)]
    over_data = [loop for loop in around if any(map(words.LOADER_NAME.search, names_in(loop.iter)))]
    holder = _holder(over_data[0], where) if over_data else ""
    return holder != "" and not any(_makes(loop, holder, where) for loop in over_data)


def _has(loop: _Loop, line: int) -> bool:
    return loop.body[0].lineno <= line <= (loop.body[-1].end_lineno or 0)


def _holder(loop: _Loop, where: Location) -> str:
    """The name of what is added to."""
    for node in ast.walk(loop):
        if getattr(node, "lineno", 0) != where.line or getattr(node, "col_offset", -1) != where.column:
            continue
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            return _root(node.func.value)
        if isinstance(node, ast.AugAssign):
            return _root(node.target)
        if isinstance(node, ast.Assign):
            return _root(node.targets[0])
    return ""


def _root(node: ast.expr) -> str:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _makes(loop: _Loop, name: str, where: Location) -> bool:
    """Whether the loop gives the name something anew, but for what is told about."""
    return any(
        isinstance(node, ast.Assign)
        and node.lineno != where.line
        and any(name in names_in(target) for target in node.targets)
        for node in ast.walk(loop)
    ) or name in names_in(loop.target)
