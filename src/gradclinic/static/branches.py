"""What is plain about an `if` from its syntax."""

from __future__ import annotations

import ast
import re

from gradclinic.static import words
from gradclinic.static.abilities import Branches, Can
from gradclinic.static.roles import ACTOR_ROLES, role_of
from gradclinic.static.survey import Survey
from gradclinic.static.syntax import last_name, names_in

_WHERE_FINITE = {"isnan": False, "isinf": False, "isfinite": True}
_OF_ALL = ("any", "all", "item")
_RESUMED = words.Pattern(r"resume|trained_in|already_trained|steps?_to_skip|skip_(step|batch|first)", re.I)
_BEGUN = words.Pattern(r"(last|start(ing)?|begin|first)_?(epoch|step|iter\w*)$", re.I)
"""Where a run goes on that was broken off: what lies before it is passed over."""


def shape_of(survey: Survey, node: ast.If) -> Branches:
    body = survey.can_any(node.body)
    # What an error tells may well be named like something that acts.
    acts = survey.can_any(node.body[:-1]) if isinstance(node.body[-1], ast.Raise) else body
    return Branches(
        stops=_only_stops(node.body) and not acts & Can.ACT,
        else_stops=bool(node.orelse) and _only_stops(node.orelse),
        can=body | survey.can_any(node.orelse),
        casts=any(role_of(survey, name) in ACTOR_ROLES for name in _bound([*node.body, *node.orelse])),
        finite=_if_leaves_out(node),
        resumes=not body & Can.ACT and _skips_what_was_trained(node),
    )


def _skips_what_was_trained(node: ast.If) -> bool:
    """`if trained > 0: trained -= 1; continue`, `if step < resume_step: continue`: batches or epochs of the
    run before.

    The loop to judge is what comes after them.
    """
    if not isinstance(node.body[-1], ast.Continue):
        return False
    asked = names_in(node.test)
    counted = [part.target for part in node.body if isinstance(part, ast.AugAssign)]
    down = [part for part in node.body if isinstance(part, ast.AugAssign) and isinstance(part.op, ast.Sub)]
    if down and all(last_name(target) in asked for target in counted):
        return True
    return any(_RESUMED.search(name) for name in asked) or (
        isinstance(node.test, ast.Compare)
        and isinstance(node.test.ops[0], (ast.Lt, ast.LtE))
        and any(_BEGUN.search(name) for name in names_in(node.test.comparators[0]))
    )


def _if_leaves_out(node: ast.If) -> bool | None:
    """`if torch.isnan(loss).any(): continue` leaves a broken batch out, and `if loss == 0: continue` an empty
    one: the loop to judge is the one it lets pass. Other questions for what is finite are settings:
    `if math.isnan(args.target)`.
    """
    answer = _if_finite(node.test)
    otherwise = node.orelse if answer else node.body
    leaves = bool(otherwise) and isinstance(otherwise[-1], (ast.Continue, ast.Break, ast.Return, ast.Raise))
    return answer if leaves else None


def _if_finite(test: ast.expr) -> bool | None:
    """How such a question is answered where all numbers are finite and no loss is 0; None for others."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        known = _if_finite(test.operand)
        return None if known is None else not known
    if isinstance(test, ast.BoolOp):
        decisive = isinstance(test.op, ast.Or)
        answers = [_if_finite(part) for part in test.values]
        return decisive if decisive in answers else None if None in answers else not decisive
    if isinstance(test, ast.Compare):
        return False if _is_no_loss(test) else None
    if not isinstance(test, ast.Call):
        return None
    name = last_name(test.func)
    if name == "bool" and test.args:
        return _if_finite(test.args[0])
    if name in _OF_ALL and isinstance(test.func, ast.Attribute):
        return _if_finite(test.args[0] if test.args else test.func.value)
    return _WHERE_FINITE.get(name)


def _is_no_loss(test: ast.Compare) -> bool:
    """`loss == 0`."""
    zero = test.comparators[0]
    asked = test.left
    if isinstance(asked, ast.Call) and isinstance(asked.func, ast.Attribute) and asked.func.attr == "item":
        asked = asked.func.value
    return (
        len(test.ops) == 1
        and isinstance(test.ops[0], ast.Eq)
        and isinstance(zero, ast.Constant)
        and zero.value == 0
        and isinstance(asked, (ast.Name, ast.Attribute))
        and words.LOSS_NAME.search(last_name(asked)) is not None
    )


def _bound(body: list[ast.stmt]) -> list[str]:
    targets = [target for part in body if isinstance(part, ast.Assign) for target in part.targets]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def ends_loop(node: ast.If) -> bool:
    return not node.orelse and isinstance(node.body[-1], (ast.Break, ast.Return))


def counts(test: ast.expr) -> bool:
    """`i % 100 == 0` and its like: true at some iteration, of which the walk has few."""
    return any(isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mod) for part in ast.walk(test))


def note_exits(survey: Survey, loop: ast.For | ast.AsyncFor | ast.While) -> None:
    """Remember the breaks that stand before all else in a loop: it ends there as it would by itself. So it
    does at those after all else, if nothing says that they are taken."""
    if loop.orelse:
        return
    for part in loop.body:
        if isinstance(part, ast.If) and _only_breaks(survey, part):
            survey.exits.add(part)
        elif survey.can(part) & (Can.ACT | Can.LEAVE | Can.FETCH):
            break
    for part in reversed(loop.body):
        if isinstance(part, ast.If) and _only_breaks(survey, part) and _only_says(part.body[:-1]):
            survey.last_exits.add(part)
        elif survey.can(part) & (Can.ACT | Can.LEAVE | Can.FETCH):
            break


def _only_breaks(survey: Survey, node: ast.If) -> bool:
    breaks = not node.orelse and isinstance(node.body[-1], ast.Break)
    return breaks and not survey.can_any(node.body) & Can.ACT


def _only_says(body: list[ast.stmt]) -> bool:
    """`print("early stop")`: nothing that somebody asks for after the loop."""
    return all(isinstance(part, ast.Expr) for part in body)


def is_main(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and test.left.id == "__name__"


def _only_stops(body: list[ast.stmt]) -> bool:
    last = body[-1]
    return isinstance(last, ast.Raise) or (
        isinstance(last, ast.Expr)
        and isinstance(last.value, ast.Call)
        and last_name(last.value.func) in ("exit", "_exit", "quit")
    )
