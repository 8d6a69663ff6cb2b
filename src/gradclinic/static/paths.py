"""The paths a piece of code can take, walked one after another.

A walk asks for each condition it cannot decide; the same condition gets the same answer all along one path.
First every condition is seen both ways, each flip alone; then, if there are few, all combinations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field
from itertools import product
from typing import TypeVar

from gradclinic.frozen import record
from gradclinic.static import words

T = TypeVar("T")
_EQUALITY = words.Pattern(r"""\((.*) Eq ['"\d][^()]*\)$""")
MOST_PATHS = 48
MOST_COMBINED = 5
"""Conditions that are still combined in every way."""


@record
class Choices:
    """The answers of one path: those forced on it, and True for all it meets beyond them."""

    forced: dict[str, bool]
    asked: dict[str, bool] = field(default_factory=dict)

    def decide(self, condition: str) -> bool:
        known = self.asked.get(condition)
        if known is None:
            known = not self._excluded(condition) and self.forced.get(condition, True)
            self.asked[condition] = known
        return known

    def _excluded(self, condition: str) -> bool:
        """What equals one constant on this path equals no other."""
        equality = _EQUALITY.match(condition)
        return equality is not None and any(
            taken and (other := _EQUALITY.match(asked)) is not None and other[1] == equality[1]
            for asked, taken in self.asked.items()
        )


def explore(
    walk: Callable[[Choices], T], afford: Callable[[], bool], shape: Callable[[T], object]
) -> Iterator[T]:
    """`walk` along every path, as far as they are few and `afford` says that time is left.

    `shape` tells whether two outcomes differ: a condition whose flip changes nothing is not combined.
    """
    waiting: list[tuple[str, object, dict[str, bool]]] = [("", None, {})]
    walked: set[frozenset[tuple[str, bool]]] = set()
    known: set[str] = set()
    telling: list[str] = []
    while waiting and len(walked) < MOST_PATHS and afford():
        flipped, otherwise, forced = waiting.pop(0)
        choices = Choices(forced)
        outcome = walk(choices)
        yield outcome
        walked.add(frozenset(choices.asked.items()))
        seen = shape(outcome)
        if flipped and seen != otherwise:
            telling.append(flipped)
        for condition in choices.asked:
            if condition not in known:
                known.add(condition)
                waiting.append((condition, seen, {**_before(choices, condition), condition: False}))
    if not 1 < len(telling) <= MOST_COMBINED:
        return
    for answers in product((True, False), repeat=len(telling)):
        forced = dict(zip(telling, answers, strict=True))
        if any(all(forced.get(c, a) == a for c, a in path) for path in walked):
            continue
        if not afford():
            return
        choices = Choices(forced)
        yield walk(choices)
        walked.add(frozenset(choices.asked.items()))


def _before(choices: Choices, condition: str) -> dict[str, bool]:
    """The answers that led to `condition` being asked."""
    answers: dict[str, bool] = {}
    for asked, answer in choices.asked.items():
        if asked == condition:
            break
        answers[asked] = answer
    return answers
