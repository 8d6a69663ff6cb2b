"""Conditions of which the walk takes one answer, since what a name stands for goes with it."""

from __future__ import annotations

from gradclinic.static.conditions import condition_of, truth
from gradclinic.static.values import Both, Value
from gradclinic.static.walk import Walk


class Branch:
    """A branch that is walked without knowing whether it is taken."""

    # Entered more often than any other block: a generator would take longer than what is done here.
    def __init__(self, walk: Walk, test: Value, *, taken: bool) -> None:
        condition, wanted = condition_of(test) if not isinstance(test, Both) else ("", True)
        self._walk, self._condition = walk, (condition, wanted is taken)

    def __enter__(self) -> None:
        self._walk.unsure += 1
        self._walk.branches.append(self._condition)

    def __exit__(self, *raised: object) -> None:
        self._walk.branches.pop()
        self._walk.unsure -= 1


def answered(walk: Walk, test: Value) -> bool | None:
    """How this path has answered before, or supposes; None for a condition that is new to it."""
    if isinstance(test, Both):
        return None
    condition, wanted = condition_of(test)
    if condition in walk.choices.asked:
        return walk.decide(condition) is wanted
    known = walk.supposed.get(condition)
    return None if known is None else known is wanted


def settled(walk: Walk, switch: Value) -> bool | None:
    """How this path has answered so far; None where it was not asked, or not all that it hangs on."""
    known = truth(switch)
    if known is not None or not isinstance(switch, Both):
        return answered(walk, switch) if known is None else known
    answers = [settled(walk, part) for part in switch.parts]
    if switch.either in answers:
        return switch.either
    return None if None in answers else not switch.either


def suppose(walk: Walk) -> bool:
    """Whether all that leads here can be told again; from now on it is taken to hold."""
    if not all(condition for condition, _ in walk.branches):
        return False
    walk.supposed.update(walk.branches)
    return True
