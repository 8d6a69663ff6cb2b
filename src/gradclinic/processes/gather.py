"""The records of all processes put together: one observation each, and what only all of them can tell."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from gradclinic.facts import Observation, Replica, Replicas, Source, Tape
from gradclinic.processes.record import Record


@dataclass(frozen=True)
class Gathered:
    observations: tuple[Observation, ...]
    steps: int
    ranks: int
    """How many ranks of a distributed run were seen; 0 if there was none."""
    problems: tuple[str, ...]


def gather(records: Iterable[Record], *, succeeded: bool) -> Gathered:
    """`succeeded`: the whole command did, so a process that ended by itself ended as it should."""
    told = list(records)
    observations = [
        replace(record.observation, rank=record.rank)
        if succeeded and record.final
        else replace(_cut_short(record.observation), rank=record.rank)
        for record in told
    ]
    common = [(replicas,) for replicas in _replicas(told)]
    if common:
        observations.append(Observation(Source.RUNTIME, tuple(common)))
    return Gathered(
        tuple(observations),
        _steps(told),
        len({record.rank for record in told if record.rank is not None}),
        tuple(dict.fromkeys(problem for record in told for problem in record.problems)),
    )


def _cut_short(observation: Observation) -> Observation:
    cases = tuple(
        tuple(replace(fact, complete=False) if isinstance(fact, Tape) else fact for fact in case)
        for case in observation.cases
    )
    return replace(observation, cases=cases)


def _steps(records: list[Record]) -> int:
    """Ranks of one world step together; what trains by itself adds to them."""
    together: defaultdict[str, int] = defaultdict(int)
    alone = 0
    for record in records:
        if record.rank is None:
            alone += record.steps
        else:
            together[record.world] = max(together[record.world], record.steps)
    return alone + sum(together.values())


def _replicas(records: list[Record]) -> Iterator[Replicas]:
    """The copies of each model that several ranks of one world left behind."""
    copies: defaultdict[tuple[object, ...], dict[int, Replica]] = defaultdict(dict)
    for record in records:
        for case in record.observation.cases:
            for fact in case:
                if isinstance(fact, Replica):
                    key = (record.world, fact.number, fact.ranks, fact.parameters)
                    copies[key][fact.rank] = fact
    for of_one in copies.values():
        if len(of_one) > 1:
            yield Replicas(tuple(of_one[rank] for rank in sorted(of_one)))
