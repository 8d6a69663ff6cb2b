"""The log of an execution, as facts about graphs: cut, kept, or gone through twice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gradclinic.facts import Cut, CutKind, CutRole, Location, RetainedGraph
from gradclinic.static.flow.machine import Log, Use
from gradclinic.static.flow.values import NO_IDS, CutAt, Flow, Ids

SEEN = 4
"""Backwards that a call site read from source stands for."""


def graph_cases(log: Log) -> Iterable[tuple[object, ...]]:
    sites: dict[Location, list[Use]] = {}
    for use in log.uses:
        if use.whole:
            sites.setdefault(use.where, []).append(use)
    for where, uses in sites.items():
        yield from ((cut,) for cut in _cuts(log, where, uses))
    if log.finished and all(use.flow.known for use in log.uses):
        yield from ((cut,) for cut in _broken_paths(log))
    if log.finished:
        yield from ((kept,) for kept in _retained(log, sites))


def _cuts(log: Log, where: Location, uses: list[Use]) -> Iterator[Cut]:
    """Cuts that every way to this backward has met."""
    flows = [use.flow for use in uses]
    wholes = [_whole(flow) for flow in flows]
    if all(whole is not None for whole in wholes):
        whole = wholes[0]
        assert whole is not None
        if whole.silenced and whole.where in log.asked_for:
            return
        yield Cut(whole.kind, CutRole.WHOLE, whole.where, where, silenced=whole.silenced)
        return
    if any(_is_shifted(flow) for flow in flows):
        return
    for term in dict.fromkeys(term.where for flow in flows for term in flow.terms):
        found = [_term(log, flow, term) for flow in flows]
        first = found[0]
        if first is not None and all(one is not None for one in found):
            yield Cut(first.kind, CutRole.TERM, first.where, where, _named(log, first.owners))


def _broken_paths(log: Log) -> Iterator[Cut]:
    """Cuts behind which there are parameters that an optimizer holds and no backward reaches."""
    reached = NO_IDS.union(*(use.flow.owners for use in log.uses))
    found: dict[Location, Cut] = {}
    for use in log.uses:
        for cut in use.flow.paths:
            unreached = (cut.owners & log.optimized) - reached
            if unreached and cut.sure and cut.kind in (CutKind.NUMPY, CutKind.TENSOR):
                found[cut.where] = Cut(cut.kind, CutRole.PATH, cut.where, use.where, _named(log, unreached))
    yield from found.values()


def _named(log: Log, owners: Ids) -> tuple[str, ...]:
    return tuple(log.layers.get(owner, "parameters") for owner in sorted(owners)) or ("parameters",)


def _whole(flow: Flow) -> CutAt | None:
    if flow.cut is None or not (flow.cut.sure or flow.cut.scalar):
        return None
    alone = flow.cut.silenced and flow.known and not flow.owners
    return flow.cut if flow.grad is False or alone else None


def _is_shifted(flow: Flow) -> bool:
    """`value + (t - t.item())`: the value of what trains is taken away, for another to stand in its place."""
    return any(term.nodes and term.nodes <= flow.nodes for term in flow.terms)


def _term(log: Log, flow: Flow, where: Location) -> CutAt | None:
    for term in flow.terms:
        if term.where != where:
            continue
        # A number taken from what trains anyway, in this loss or by itself, shifts it and loses nothing.
        trains = term.nodes <= flow.nodes or any(
            term.nodes <= use.flow.nodes for use in log.uses if use.whole
        )
        sure = term.sure or term.nodes & flow.nodes or (term.of_loss and term.kind is CutKind.ITEM)
        lost = sure and not trains
        whole = term.scalar or term.kind in (CutKind.TENSOR, CutKind.GRAD)
        if lost and whole and flow.scalar:
            return term
    return None


def _retained(log: Log, sites: dict[Location, list[Use]]) -> Iterator[RetainedGraph]:
    for where, uses in sites.items():
        if not all(
            use.retain is True and _alone(log, use.flow) and use.flow.grad is not False for use in uses
        ):
            continue
        if not any(_used_again(log, use) for use in uses):
            yield RetainedGraph(where, calls=SEEN, used=False, nodes=0)


def _alone(log: Log, flow: Flow) -> bool:
    """Whether only what is seen can share its graph; models out of sight may remember what they computed."""
    return flow.known or (flow.anew and bool(flow.nodes) and bool(log.marks) and not log.remembers)


def _used_again(log: Log, use: Use) -> bool:
    number = log.uses.index(use)
    nodes = use.flow.nodes
    given = NO_IDS.union(*(flow.nodes for before, flow in log.handed_out if before > number))
    # Who is given back something on the way to the loss may go on with it.
    back = NO_IDS.union(
        *(flow.nodes for root, flow in log.returned if root == use.root and not nodes <= flow.nodes)
    )
    if (given | back) & nodes:
        return True
    # To a function that is run for itself, a graph comes only if it is handed out; or is left where another
    # such function finds it, but not by the file itself, which calls no such function.
    out = nodes & NO_IDS.union(log.left if use.root else (), *(flow.nodes for _, flow in log.handed_out))
    return any(
        other.flow.nodes & nodes or (not _alone(log, other.flow) and (other.root == use.root or out))
        for position, other in enumerate(log.uses)
        if (position > number or other.root != use.root) and not _never_both(use, other)
    )


def _never_both(one: Use, other: Use) -> bool:
    """Whether they stand in two arms of one condition: with a scaler, say, and without."""
    arms = dict(one.branch)
    return any(arms.get(condition, arm) != arm for condition, arm in other.branch)


def unsure_of(log: Log, path: str) -> set[Location]:
    """Backwards of the file that keep a graph of which it cannot tell that it is for nobody."""
    told = {case[0].where for case in graph_cases(log) if isinstance(case[0], RetainedGraph)}
    return {use.where for use in log.uses if use.whole and use.retain and use.where.path == path} - told
