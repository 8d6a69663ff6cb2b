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
            calls = [fact for fact in case if isinstance(fact, LossCall)]
            ends = {_end(call, path) for call in calls}
            where = ends.pop() if len(ends) == 1 else None
            if where is not None and not any(call.where.path in (path, *beside) for call in calls):
                given.setdefault(where, []).append(calls[0])
    for where, calls in given.items():
        # Where one script is right to end in it, it is another's loss that is wrong.
        training = [call for call in calls if call.trains]
        if training and len({call.loss for call in calls}) == 1:
            first = training[0]
            yield (LossCall(first.loss, first.where, first.made_by, told_at=where),)


def _end(call: LossCall, path: str) -> Location | None:
    last = call.last_op
    where = last.where if last is not None and last.name in _ENDS else None
    return where if where is not None and where.path == path else None
