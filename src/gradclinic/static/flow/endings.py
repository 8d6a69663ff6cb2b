"""What the models of a file end in, where it is other files that give it to a loss."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from gradclinic.facts import Location, LossCall
from gradclinic.static.flow.executing import run_by_callers
from gradclinic.static.flow.loss_facts import loss_cases
from gradclinic.static.flow.machine import MOST_STEPS

_ENDS = frozenset({"softmax", "log_softmax", "sigmoid"})


def ending_cases(
    tree: ast.Module, text: str, path: str, beside: Collection[str], trainers: list[str]
) -> Iterator[tuple[object, ...]]:
    """Losses of other files that `trainers` give what models of this one end in, told where these do so.

    Losses of files `beside` it are told of there.
    """
    given: dict[Location, list[LossCall]] = {}
    for log in run_by_callers(tree, text, path, trainers, MOST_STEPS):
        for case in loss_cases(log):
            end = _end_of(case, path, beside)
            if end is not None:
                given.setdefault(end, []).extend(fact for fact in case if isinstance(fact, LossCall))
    for end, calls in given.items():
        # Where one script is right to end in it, it is another's loss that is wrong.
        training = [call for call in calls if call.trains]
        if training and len({call.loss for call in calls}) == 1:
            yield (_told_at(end, training[0]),)


def told_in(path: str, case: tuple[object, ...], beside: Collection[str]) -> tuple[object, ...]:
    """The same, told where the model ends if that is in this file, and the loss in none that is read."""
    end = _end_of(case, path, beside)
    return tuple(_told_at(end, fact) if isinstance(fact, LossCall) and end else fact for fact in case)


def _told_at(end: Location, call: LossCall) -> LossCall:
    return LossCall(call.loss, call.where, call.made_by, trains=call.trains, told_at=end)


def _end_of(case: tuple[object, ...], path: str, beside: Collection[str]) -> Location | None:
    """Where in the file at `path` all that the case tells of ends, if the loss is not told of itself."""
    ends = {_end(fact, path) if isinstance(fact, LossCall) else None for fact in case}
    apart = all(isinstance(fact, LossCall) and fact.where.path not in (path, *beside) for fact in case)
    return ends.pop() if apart and len(ends) == 1 else None


def _end(call: LossCall, path: str) -> Location | None:
    last = call.last_op
    where = last.where if last is not None and last.name in _ENDS else None
    return where if where is not None and where.path == path else None
