"""Which statements the tape can depend on at all; the walk passes over the rest."""

from __future__ import annotations

import ast

from gradclinic.static import words
from gradclinic.static.abilities import Can
from gradclinic.static.survey import HAPPENS, Survey
from gradclinic.static.syntax import last_name, nodes_in

_SKIPPED = (
    ast.Expr | ast.Assign | ast.AnnAssign | ast.AugAssign | ast.If | ast.For | ast.While | ast.With | ast.Try
)


class Relevance:
    def __init__(self, survey: Survey) -> None:
        self._survey = survey
        self._idle: dict[ast.stmt, bool] = {}

    def idle(self, node: ast.stmt) -> bool:
        """Whether nothing on the tape depends on this statement."""
        known = self._idle.get(node)
        if known is None:
            known = self._idle[node] = self._is_idle(node)
        return known

    def _is_idle(self, node: ast.stmt) -> bool:
        facts = self._survey.facts(node)
        if facts is None or not isinstance(node, _SKIPPED):
            return False
        if self._survey.can(node) & (HAPPENS | Can.STOP):
            return False
        if self._survey.steps_on_nothing and _may_go_backward(node):
            return False
        needed = self._survey.needed
        return facts.assigns.isdisjoint(needed) and facts.exposes.isdisjoint(needed)


def _may_go_backward(node: ast.stmt) -> bool:
    """Whether it makes a call for what that does, or gives a loss to one: `weights = balance(loss_list)`."""
    parts = nodes_in(node)
    return any(isinstance(part, ast.Expr) and isinstance(part.value, ast.Call) for part in parts) or any(
        isinstance(part, ast.Call) and is_given_a_loss(part) for part in parts
    )


def is_given_a_loss(call: ast.Call) -> bool:
    """By its name: who computed it may be out of sight."""
    given = (*call.args, *(keyword.value for keyword in call.keywords))
    return any(words.LOSS_NAME.search(last_name(one)) for one in given)
