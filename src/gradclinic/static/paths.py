"""The paths a piece of code can take, walked one after another.

A walk asks for each condition it cannot decide; the same condition gets the same answer all along one path.
First every condition is seen both ways, each flip alone; then, if there are few, each two of them together:
no fault is known that three conditions at once excuse, and no two of them. A flip of which it is plain that
it leads along a path already walked is not walked again. One that changes nothing but how often another
condition is asked is walked with that one flipped as well: `if limit: if not frozen: clip()`.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import TypeVar

from gradclinic.static.choices import Choices, Path, before, foreseen, uncovered

T = TypeVar("T")
MOST_PATHS = 48
MOST_COMBINED = 5
"""Conditions that are still combined, two by two."""


def explore(
    walk: Callable[[Choices], T], afford: Callable[[int], bool], shape: Callable[[T], object]
) -> list[T]:
    """`walk` along every path. None of them if they are too many, or `afford` says of those that are known
    to wait that there is no time for them: what some show, another may disprove.

    `shape` tells whether two outcomes differ: a condition whose flip changes nothing is not combined.
    """
    outcomes: list[T] = []
    waiting: list[tuple[Path, str]] = []
    flips: dict[tuple[Choices, str], Path] = {}
    walked: set[frozenset[tuple[str, bool]]] = set()
    known: set[str] = set()
    telling: dict[str, dict[str, bool]] = {}
    """What tells, with the answers that must be no for it to be asked."""

    def note(path: Path) -> None:
        walked.add(frozenset(path.choices.asked.items()))
        for condition, answer in path.choices.asked.items():
            if condition not in known:
                known.add(condition)
                if answer:
                    waiting.append((path, condition))

    if afford(1):
        choices = Choices({})
        outcomes.append(walk(choices))
        note(Path(choices, shape(outcomes[-1])))
    while waiting and len(walked) < MOST_PATHS and afford(len(waiting)):
        origin, flipped = waiting.pop(0)
        path = foreseen(origin, flipped, flips)
        if path is None:
            choices = Choices({**before(origin.choices, flipped), flipped: False})
            outcomes.append(walk(choices))
            path = Path(choices, shape(outcomes[-1]))
        flips[origin.choices, flipped] = path
        note(path)
        if path.shape != origin.shape:
            telling[flipped] = {c: a for c, a in before(origin.choices, flipped).items() if not a}
            continue
        for other in uncovered(origin, path, flipped):
            forced = {**path.choices.asked, other: False, flipped: False}
            known_to_come = any(all(forced.get(c, a) == a for c, a in taken) for taken in walked)
            # What waits comes first: no time for all of that would be none for what has been seen.
            if not known_to_come and len(walked) + len(waiting) < MOST_PATHS and afford(len(waiting) + 1):
                choices = Choices(forced)
                outcomes.append(walk(choices))
                note(Path(choices, shape(outcomes[-1])))
    if waiting:
        return []
    if not 1 < len(telling) <= MOST_COMBINED:
        return outcomes
    for pair in combinations(telling, 2):
        # `if gpu >= 0 and not plain`: that `plain` tells is seen only where the first half holds.
        forced = {c: a for told in pair for c, a in telling[told].items()}
        forced |= {condition: condition not in pair for condition in telling}
        if any(all(forced.get(c, a) == a for c, a in path) for path in walked):
            continue
        if not afford(1):
            break
        choices = Choices(forced)
        outcomes.append(walk(choices))
        walked.add(frozenset(choices.asked.items()))
    return outcomes
