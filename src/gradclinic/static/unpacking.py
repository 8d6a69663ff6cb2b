"""What each name gets of a value that is unpacked into several."""

from __future__ import annotations

import ast
from dataclasses import replace

from gradclinic.facts import ActorKind
from gradclinic.static import words
from gradclinic.static.conditions import name_of
from gradclinic.static.opaque import called_again
from gradclinic.static.roles import ACTOR_ROLES, infer, role_of
from gradclinic.static.syntax import last_name
from gradclinic.static.values import ActorRef, Params, Seq, Tensor, Unknown, Value
from gradclinic.static.walk import Walk


def spread(walk: Walk, value: Value, targets: list[ast.expr]) -> list[Value]:
    """The values that `targets` get from unpacking `value`."""
    if isinstance(value, Seq) and len(value.items) == len(targets):
        return value.items
    if isinstance(value, Tensor):
        # One may be called a loss, and the others not; beside its count, it is a sum.
        counted = any(words.AMOUNT_NAME.search(last_name(target)) for target in targets)
        return [replace(value, scaled=value.scaled or None if counted else value.scaled) for _ in targets]
    if isinstance(value, Params):
        return [value] * len(targets)
    if isinstance(value, ActorRef):
        return [
            value
            if value.kind is ActorKind.SCHEDULE or _stands_for(walk, t, value)
            else Unknown(last_name(t))
            for t in targets
        ]
    base = name_of(value)
    held = value.holds if isinstance(value, Unknown) else ()
    return [
        called_again(walk, held, last_name(target))
        or infer(walk, last_name(target), f"{base}.{last_name(target)}")
        for target in targets
    ]


def _stands_for(walk: Walk, target: ast.expr, made: ActorRef) -> bool:
    """`optimizer, scheduler = ...`, or `[optimizer], [scheduler] = ...` of what gives lists of them."""
    if isinstance(target, (ast.List, ast.Tuple)):
        return len(target.elts) == 1 and _stands_for(walk, target.elts[0], made)
    return ACTOR_ROLES.get(role_of(walk.survey, last_name(target))) is made.kind
