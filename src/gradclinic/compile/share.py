"""`share_compiled`: many task models, one compiled graph for all whose graphs are equal."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gradclinic.compile.graphs import Backend, Compiled
from gradclinic.compile.lifted import Lifted
from gradclinic.compile.proof import Terms
from gradclinic.compile.verified import VerifiedFunction, as_arguments
from gradclinic.errors import UsageError


@dataclass(frozen=True, slots=True)
class TaskCost:
    """What one task added."""

    task: str
    group: int
    """Tasks of one group run the same compiled graph."""
    wall_s: float
    cpu_s: float
    peak_mb: float
    """How far the process's peak memory rose."""


class SharedFunctions(Mapping[str, VerifiedFunction]):
    """The compiled functions by task, and what each of them cost."""

    def __init__(self) -> None:
        self._functions: dict[str, VerifiedFunction] = {}
        self.costs: list[TaskCost] = []

    def __getitem__(self, task: str) -> VerifiedFunction:
        return self._functions[task]

    def __iter__(self) -> Iterator[str]:
        return iter(self._functions)

    def __len__(self) -> int:
        return len(self._functions)

    @property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """The tasks that share, in the order of their first."""
        by_group: dict[int, list[str]] = {}
        for cost in self.costs:
            by_group.setdefault(cost.group, []).append(cost.task)
        return tuple(map(tuple, by_group.values()))

    def __str__(self) -> str:
        rows = [f"{'task':<16} {'graph':>5} {'wall s':>8} {'cpu s':>8} {'peak MB':>8}"]
        rows += [
            f"{cost.task:<16} {cost.group:>5} {cost.wall_s:>8.2f} {cost.cpu_s:>8.2f} {cost.peak_mb:>8.1f}"
            for cost in self.costs
        ]
        return "\n".join(rows)


def share_compiled(
    models: Mapping[str, Callable[..., Any]],
    example: Any,
    *,
    terms: Terms | None = None,
    backend: Backend = "inductor",
    dynamic: bool = False,
    tolerance: float | None = None,
) -> SharedFunctions:
    """Compile each task's model (or method), sharing the result between tasks of equal graphs.

    `example` is as in `verified_compile`, one for all tasks or a mapping with the tasks' names.
    All parameters and buffers are inputs of the graph, so tasks share whatever their weights and
    statistics; what is baked into a graph (a cut-off, a mask, another head) is part of its key, so
    tasks that differ in it do not share. Every task is proven against its own eager model.
    """
    if not models:
        raise UsageError("share_compiled was given no models")
    examples = example if isinstance(example, Mapping) and set(example) == set(models) else None
    shared = SharedFunctions()
    pool: dict[str, Compiled] = {}
    for task, target in models.items():
        wall, cpu, peak = time.perf_counter(), _cpu_seconds(), _peak_mb()
        function = VerifiedFunction(Lifted(target, task), terms, backend, dynamic, tolerance, pool)
        compiled = function.prepare(*as_arguments(example if examples is None else examples[task]))
        shared._functions[task] = function
        group = [known.run for known in pool.values()].index(compiled.run)
        shared.costs.append(
            TaskCost(task, group, time.perf_counter() - wall, _cpu_seconds() - cpu, _peak_mb() - peak)
        )
    return shared


def _cpu_seconds() -> float:
    """Of this process and of the compilers it started and waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(part.ru_utime + part.ru_stime for part in used)


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
