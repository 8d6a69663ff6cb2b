"""The log of an execution, as facts about values changed under a graph that needs them."""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import Crash, CrashKind, DataWrite, Location, UncheckedGradient
from gradclinic.static.flow.machine import Log, Stepped, Use, Write
from gradclinic.static.flow.values import NO_IDS

OVERWRITTEN = "a variable needed for gradient computation has been modified by an inplace operation"


def write_cases(log: Log) -> Iterator[tuple[object, ...]]:
    uses = [use for use in log.uses if use.whole]
    yield from ((write,) for write in _through_data(log, uses))
    yield from ((crash,) for crash in _overwritten(log, uses))
    yield from ((crash,) for crash in (_stepped_under(log, uses) if not log.casts else ()))
    for where, used in log.unchecked.items():
        if where not in log.checked:
            yield (UncheckedGradient(where, used),)


def _through_data(log: Log, uses: list[Use]) -> Iterator[DataWrite]:
    """Writes of a training loop; what is set up before the first forward harms nobody."""
    reached = NO_IDS.union(*(use.flow.owners for use in uses))
    sites: dict[Location, list[Write]] = {}
    for write in log.writes:
        sites.setdefault(write.where, []).append(write)
    for where, writes in sites.items():
        if len(writes) < 2 or not all(write.owners & reached for write in writes):
            continue
        stale = [_stale(log, write) for write in writes]
        yield DataWrite(where, stale[0] if all(stale) else None)


def _stale(log: Log, write: Write) -> Location | None:
    """The backward after `write` through a forward before it."""
    for use in log.uses[write.uses :]:
        for node in use.flow.nodes:
            if node <= write.node and log.layered.get(node, NO_IDS) & write.owners:
                return use.where
    return None


def _overwritten(log: Log, uses: list[Use]) -> Iterator[Crash]:
    found: dict[Location, Crash] = {}
    for node, write in log.spoiled.items():
        for use in log.uses[write.uses :]:
            if use.whole and node in use.flow.nodes and use.flow.certain and use.flow.grad:
                found[write.where] = Crash(
                    CrashKind.INPLACE,
                    OVERWRITTEN,
                    use.where,
                    wrote=(write.where, write.how),
                    needed=write.needed,
                )
    yield from found.values()


def _stepped_under(log: Log, uses: list[Use]) -> Iterator[Crash]:
    """Steps of optimizers between a forward and a backward that needs the weights of that forward."""
    found: dict[Location, Crash] = {}
    for step in log.steps:
        last = log.uses[step.uses - 1] if step.uses else None
        changed = step.owners & last.flow.owners if last and _surely_before(last, step) else NO_IDS
        for use in log.uses[step.uses :] if changed and step.where not in found else ():
            if _needs(log, use, step, changed):
                found[step.where] = Crash(
                    CrashKind.INPLACE, OVERWRITTEN, use.where, wrote=(step.where, "step")
                )
                break
    yield from found.values()


def _surely_before(use: Use, step: Stepped) -> bool:
    """Whether it left gradients for the step: without any, that changes nothing."""
    surely = use.flow.grad and use.flow.certain and use.branch == step.branch[: len(use.branch)]
    return bool(surely and use.whole)


def _needs(log: Log, use: Use, step: Stepped, changed: frozenset[int]) -> bool:
    flow = use.flow
    if not (use.whole and flow.grad and flow.known and flow.certain):
        return False
    if step.branch != use.branch[: len(step.branch)]:
        return False
    if any(keyword.arg == "inputs" for keyword in use.node.keywords):
        return False  # it goes no further back than to those
    stale = {node for node in flow.nodes if node <= step.node and log.needing.get(node, NO_IDS) & changed}
    # What an earlier backward has let go of, fails for that.
    return bool(stale) and all(
        one.retain is True for one in log.uses[: log.uses.index(use)] if one.flow.nodes & stale
    )
