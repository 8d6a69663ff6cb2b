"""What is plain about an `if` from its syntax."""

from __future__ import annotations

import ast

from gradclinic.static.abilities import Branches, Can
from gradclinic.static.roles import ACTOR_ROLES, role_of
from gradclinic.static.survey import Survey
from gradclinic.static.syntax import last_name


def shape_of(survey: Survey, node: ast.If) -> Branches:
    body = survey.can_any(node.body)
    return Branches(
        stops=_only_stops(node.body) and not body & Can.ACT,
        else_stops=bool(node.orelse) and _only_stops(node.orelse),
        can=body | survey.can_any(node.orelse),
        casts=any(role_of(survey, name) in ACTOR_ROLES for name in _bound([*node.body, *node.orelse])),
    )


def _bound(body: list[ast.stmt]) -> list[str]:
    targets = [target for part in body if isinstance(part, ast.Assign) for target in part.targets]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def ends_loop(node: ast.If) -> bool:
    return not node.orelse and isinstance(node.body[-1], (ast.Break, ast.Return))


def note_exits(survey: Survey, loop: ast.For | ast.AsyncFor | ast.While) -> None:
    """Remember the breaks that stand before all else in a loop: it ends there as it would by itself."""
    for part in loop.body if not loop.orelse else ():
        if isinstance(part, ast.If) and _only_breaks(part) and not survey.can_any(part.body) & Can.ACT:
            survey.exits.add(part)
        elif survey.can(part) & (Can.ACT | Can.LEAVE | Can.FETCH):
            return


def _only_breaks(node: ast.If) -> bool:
    return not node.orelse and isinstance(node.body[-1], ast.Break)


def is_main(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and test.left.id == "__name__"


def _only_stops(body: list[ast.stmt]) -> bool:
    last = body[-1]
    return isinstance(last, ast.Raise) or (
        isinstance(last, ast.Expr)
        and isinstance(last.value, ast.Call)
        and last_name(last.value.func) in ("exit", "_exit", "quit")
    )
