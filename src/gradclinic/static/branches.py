"""What is plain about an `if` from its syntax."""

from __future__ import annotations

import ast

from gradclinic.static.abilities import Branches, Can
from gradclinic.static.survey import Survey
from gradclinic.static.syntax import last_name


def shape_of(survey: Survey, node: ast.If) -> Branches:
    body = survey.can_any(node.body)
    return Branches(
        stops=_only_stops(node.body) and not body & Can.ACT,
        else_stops=bool(node.orelse) and _only_stops(node.orelse),
        can=body | survey.can_any(node.orelse),
        binds=any(isinstance(part, ast.Name) for part in _targets([*node.body, *node.orelse])),
    )


def _targets(body: list[ast.stmt]) -> list[ast.expr]:
    return [target for statement in body if isinstance(statement, ast.Assign) for target in statement.targets]


def ends_loop(node: ast.If) -> bool:
    return not node.orelse and isinstance(node.body[-1], (ast.Break, ast.Return))


def is_main(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and test.left.id == "__name__"


def _only_stops(body: list[ast.stmt]) -> bool:
    last = body[-1]
    return isinstance(last, ast.Raise) or (
        isinstance(last, ast.Expr)
        and isinstance(last.value, ast.Call)
        and last_name(last.value.func) in ("exit", "_exit", "quit")
    )
