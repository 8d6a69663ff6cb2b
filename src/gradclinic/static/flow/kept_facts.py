"""The log of an execution, as facts about graphs that outlive their update."""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import AnomalyMode, Crash, CrashKind, KeptGraphs, Location
from gradclinic.static.flow.machine import Kept, Log, Use
from gradclinic.static.flow.values import Flow

Branch = tuple[tuple[int, int], ...]
SECOND_BACKWARD = "Trying to backward through the graph a second time"


def kept_cases(log: Log) -> Iterator[tuple[object, ...]]:
    uses = [use for use in log.uses if use.whole]
    yield from ((kept,) for kept in _kept_losses(log, uses))
    yield from ((crash,) for crash in _second_backwards(log, uses))
    yield from ((mode,) for mode in _under_anomaly_mode(uses, log))


def _kept_losses(log: Log, uses: list[Use]) -> Iterator[KeptGraphs]:
    sites: dict[Location, list[Kept]] = {}
    for kept in log.kept:
        sites.setdefault(kept.where, []).append(kept)
    for where, every in sites.items():
        ends = [*(kept.uses for kept in every[1:]), len(log.uses)]
        # A pass without gradients leaves no graph in what another pass fills with them.
        passes = [(kept, end) for kept, end in zip(every, ends, strict=True) if kept.flow.grad is not False]
        found = [kept for kept, _ in passes]
        spent = [kept for kept, end in passes if _spent(kept, log, end)]
        # One pass may train on what another, of the same function, merely measures.
        piles = [pile for pile in _piles(found) if all(kept in spent for kept in pile)]
        if any(_pile_up(pile, found, uses) for pile in piles):
            ends_of_graphs = {use.flow.nodes for use in uses}
            losses = all(is_loss(kept) or kept.flow.nodes in ends_of_graphs for kept in found)
            yield KeptGraphs(where, alive=0, of=0, outputs=not losses)


def _piles(found: list[Kept]) -> list[list[Kept]]:
    """What comes to lie in one list, or in one sum."""
    piles: list[list[Kept]] = []
    for kept in found:
        below = next((pile for pile in piles if lies_on(kept, pile[0])), None)
        if below is None:
            piles.append([kept])
        else:
            below.append(kept)
    return piles


def lies_on(kept: Kept, first: Kept) -> bool:
    if kept.into is None:
        return kept.holder == first.holder
    return first.flow.nodes <= kept.into.nodes


def _spent(kept: Kept, log: Log, end: int) -> bool:
    """Whether a backward on this very graph runs before the next one is kept."""
    flow = kept.flow
    # `out["loss"].backward()` goes through all that is known of `out`, if nothing in it was replaced.
    ends = [use.flow.nodes for use in log.uses[:end] if use.whole]
    holds_loss = flow.certain and flow.nodes in ends
    if not (flow.known or is_loss(kept) or holds_loss or _made_the_graph(flow, log, end)):
        return False
    if flow.spared or not flow.nodes or flow.form != "tensor" or kept.holder in log.emptied:
        return False
    # What a branch left may have been detached in it, after the backward there say.
    exact = flow.grad is None and not flow.certain
    return any(
        use.whole
        and gone_through(flow, use.flow, log)
        and (kept.branch == use.branch if exact else _goes_with(use.branch, kept.branch, log))
        for use in log.uses[:end]
    )


def _goes_with(used: Branch, kept: Branch, log: Log) -> bool:
    """Whether they stand in the same arms of conditions, or one of them in more: `if i % 100 == 0` may choose
    what is kept of all that is gone through, though not `if i == 0`, which keeps but one."""
    both = min(len(used), len(kept))
    return used[:both] == kept[:both] and log.singled.isdisjoint(kept[both:])


def _made_the_graph(flow: Flow, log: Log, end: int) -> bool:
    """Whether there is nothing else that the graph a backward went through can be of: a model gave it."""
    if not flow.certain or not flow.nodes & log.run:
        return False
    sources = log.run | log.layered.keys()
    return any(
        use.whole and flow.nodes <= use.flow.nodes and not (use.flow.nodes - flow.nodes) & sources
        for use in log.uses[:end]
    )


def gone_through(flow: Flow, used: Flow, log: Log) -> bool:
    """Whether a backward from `used` went through all of `flow` but for what was made of it, a share say."""
    if flow.nodes <= used.nodes or (flow.losses and flow.losses <= used.losses):
        return True
    made_of_it = used.known and flow.known and bool(used.nodes) and used.nodes <= flow.nodes
    return made_of_it and not (flow.nodes - used.nodes) & log.layered.keys()


def is_loss(kept: Kept) -> bool:
    return kept.flow.scalar or bool(kept.flow.losses)


def _pile_up(pile: list[Kept], found: list[Kept], uses: list[Use]) -> bool:
    """Whether one iteration adds to what another has left, and no backward goes through the pile."""
    first, *again = pile
    holders = [kept.holder for kept in found]
    if first.most is not None and len(set(holders)) > 1 and len(pile) <= first.most:
        return False  # One of each that the loop goes over: the next time around has a list of its own
    if not any(kept.flow.nodes != first.flow.nodes for kept in again):
        return False
    if first.marks and all(kept.marks == first.marks for kept in again):
        return False  # All in one update, the gradients of which were cleared before
    return not any(sum(kept.flow.nodes <= use.flow.nodes for kept in found) > 1 for use in uses)


def _second_backwards(log: Log, uses: list[Use]) -> Iterator[Crash]:
    """A backward through layers that an earlier one, which surely ran, has let go of."""
    found: dict[Location, Crash] = {}
    for number, use in enumerate(uses):
        if not (use.flow.grad and use.flow.known and use.flow.certain):
            continue
        for earlier in uses[:number]:
            gone = earlier.flow.nodes & use.flow.nodes & log.layered.keys()
            surely = earlier.branch == use.branch[: len(earlier.branch)] and earlier.flow.certain
            if gone and surely and earlier.retain is False and earlier.flow.grad:
                spans = earlier.where == use.where
                found[use.where] = Crash(
                    CrashKind.SECOND_BACKWARD, SECOND_BACKWARD, use.where, spans_steps=spans
                )
    yield from found.values()


def _under_anomaly_mode(uses: list[Use], log: Log) -> Iterator[AnomalyMode]:
    """All backwards of the file, in a loop, under one switch. Where the loop itself switches it on for good,
    those above that line are under it from the second round on."""
    last = {use.where: use.anomaly for use in uses}
    repeated = len(last) < len(uses)
    places = {use.anomaly for use in uses}
    if any(log.switched.count(place) > 1 for place in places if place is not None):
        places = set(last.values())
    (place,) = places if len(places) == 1 else (None,)
    if place is None:
        return
    # What a trainer switches on when it is built is on whenever one of its methods is called.
    built = place in log.switched and place.function.endswith("__init__") and log.marks > 0
    if repeated or built:
        yield AnomalyMode(place, backwards=len(uses), of=len(uses), lasting=True)
