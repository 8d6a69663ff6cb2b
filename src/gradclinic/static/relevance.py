"""Which statements the tape can depend on at all; the walk passes over the rest."""

from __future__ import annotations

import ast

from gradclinic.static.abilities import Can
from gradclinic.static.survey import Survey

_ACTS = Can.ACT | Can.LEAVE | Can.FETCH | Can.FREEZE
_SKIPPED = (
    ast.Expr | ast.Assign | ast.AnnAssign | ast.AugAssign | ast.If | ast.For | ast.While | ast.With | ast.Try
)


class Relevance:
    def __init__(self, survey: Survey) -> None:
        self._survey = survey
        self._needed = _needed_names(survey)
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
        if self._survey.can(node) & (_ACTS | Can.STOP):
            return False
        return facts.assigns.isdisjoint(self._needed) and facts.exposes.isdisjoint(self._needed)


def _needed_names(survey: Survey) -> set[str]:
    """Names that something on the tape may depend on, through any chain of assignments."""
    needed = set(survey.hold_scalers)
    for node, own in survey.own:
        if survey.can(node) & _ACTS:
            needed |= own.mentions
    waiting = survey.own
    grown = True
    while grown:
        grown = False
        rest = []
        for node, own in waiting:
            if own.assigns.isdisjoint(needed):
                rest.append((node, own))
            elif not own.mentions <= needed:
                needed |= own.mentions
                grown = True
        waiting = rest
    return needed
