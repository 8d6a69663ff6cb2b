"""Whether a condition holds, or by what name to decide it."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from zlib import crc32

from gradclinic.static.choices import Question
from gradclinic.static.values import (
    NONE,
    ActorRef,
    Both,
    ClassDef,
    Const,
    Func,
    Grad,
    Instance,
    Lib,
    Map,
    Model,
    Num,
    Params,
    Seq,
    Stream,
    Tensor,
    Unknown,
    Value,
    same,
)  # fmt: skip
from gradclinic.static.walk import Walk
from gradclinic.static.words import Pattern

LONGEST_NAME = 200
OF_GRADIENTS = "<grad norm>"
"""What the size of this iteration's gradients is called, by itself and in conditions that depend on it."""
_COUNTED = Pattern(r"<(?:epoch|index)\b[^<>]*>(?: (\w+))?")
"""A number that a loop counts up, as `name_of` gives it, and what it is compared by."""
_COMPARE: dict[type[ast.cmpop], Callable[[object, object], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,  # type: ignore[dict-item]
    ast.LtE: operator.le,  # type: ignore[dict-item]
    ast.Gt: operator.gt,  # type: ignore[dict-item]
    ast.GtE: operator.ge,  # type: ignore[dict-item]
}
_TEST, _ONE, _OTHER = "<if>", "<one>", "<other>"
"""Of a value that was chosen from two: attributes that no object has."""
_OPPOSITE = {ast.NotEq: ast.Eq, ast.IsNot: ast.Is, ast.NotIn: ast.In, ast.GtE: ast.Lt, ast.LtE: ast.Gt}


def truth(value: Value) -> bool | None:
    """True or False where the walk knows it."""
    if isinstance(value, Unknown):
        return None
    if isinstance(value, Const):
        return bool(value.value)
    if isinstance(value, Num):
        return bool(value.value) if value.value is not None and not value.invented else None
    if isinstance(value, ActorRef):
        return True if value.built else None
    if isinstance(value, Seq):
        return None if value.perhaps else bool(value.items)
    if isinstance(value, (Grad, Func, ClassDef, Instance, Lib)):
        return True
    return None


def name_of(value: Value) -> str:
    """A stable name for a value: two conditions on the same thing are the same condition."""
    if isinstance(value, (Unknown, Stream)):
        return value.path if len(value.path) <= LONGEST_NAME else _shortened(value.path)
    if isinstance(value, Const):
        return repr(value.value)
    if isinstance(value, Num):
        known = value.value is not None and not value.invented
        return str(value.value) if known else f"<{'*'.join(sorted(value.units)) or 'n'}>"
    if isinstance(value, ActorRef):
        return value.id
    if isinstance(value, Model):
        return "|".join(sorted(value.keys))
    if isinstance(value, Lib):
        return value.name
    if isinstance(value, Both):
        return f"({(' Or ' if value.either else ' And ').join(map(name_of, value.parts))})"
    return f"<{type(value).__name__}>"


def _shortened(path: str) -> str:
    """Still its own: sums of sums in a loop would double it every time around."""
    return f"{path[:LONGEST_NAME]}…{crc32(path.encode()):x}"


def holds(walk: Walk, value: Value) -> bool:
    """The truth of `value` on this path."""
    known = truth(value)
    if known is not None:
        return known
    if isinstance(value, Both):
        if all(type(part) is not Both and truth(part) is None for part in value.parts):
            return walk.choices.decide_all(
                Question(tuple(condition_of(part) for part in value.parts), value.either)
            )
        # No further than Python goes: each part is then asked where the ones before it let it matter.
        answers = (holds(walk, part) for part in value.parts)
        return any(answers) if value.either else all(answers)
    condition, wanted = condition_of(value)
    return walk.decide(condition) is wanted


def begins_later(value: Value, answer: bool) -> bool:
    """Whether what is asked of a count, such as `epoch >= warm`, may get this answer later than at first."""
    if isinstance(value, Both):
        return any(begins_later(part, answer) for part in value.parts)
    condition, wanted = condition_of(value)
    counted = _COUNTED.search(condition)
    return counted is not None and (counted[1] or "Gt") != ("Lt" if answer is wanted else "Gt")


def asks_gradients(value: Value) -> bool:
    """Whether it depends on the size of this iteration's gradients, and on nothing beside."""
    return isinstance(value, Unknown) and OF_GRADIENTS in value.path


def condition_of(value: Value) -> tuple[str, bool]:
    """By what name to decide it, and which answer makes it hold."""
    name = name_of(value)
    return (name[4:], False) if name.startswith("not ") else (name, True)


def negate(value: Value) -> Value:
    known = truth(value)
    if known is not None:
        return Const(not known)
    if isinstance(value, Both):
        return Both([negate(part) for part in value.parts], either=not value.either)
    name = name_of(value)
    return Unknown(name[4:] if name.startswith("not ") else f"not {name}")


def chosen(test: Value, one: Value | None, other: Value | None, path: str) -> Value | None:
    """What `one if test else other` gives, of two that are written out: who asks which it is asks the test.

    None of others.
    """
    if not isinstance(one, (Const, Lib)) or not isinstance(other, (Const, Lib)) or same(one, other):
        return None
    values = [side.value for side in (one, other) if isinstance(side, Const)]
    if len(values) == 2 and all(isinstance(value, bool) for value in values):
        return _if(test, values[0])
    return Unknown(path, {_TEST: test, _ONE: one, _OTHER: other})


def compare(walk: Walk, left: Value, op: ast.cmpop, right: Value) -> Value:
    if isinstance(left, Unknown) and _TEST in left.attrs and isinstance(right, (Const, Lib)):
        sides = [_same_constant(left.attrs[side], op, right) for side in (_ONE, _OTHER)]
        if None not in sides:
            return Const(sides[0]) if sides[0] == sides[1] else _if(left.attrs[_TEST], sides[0])
    if isinstance(op, (ast.Is, ast.IsNot)):
        known = _identical(left, right)
        if known is not None:
            return Const(known == isinstance(op, ast.Is))
    elif isinstance(op, (ast.In, ast.NotIn)):
        held = _contains(right, left)
        return _named(left, op, right) if held is None else Const(held == isinstance(op, ast.In))
    elif isinstance(left, Num) and isinstance(right, Num):
        if _turns_later(left, op, right):
            return _named(_counted(left), op, _counted(right))
        if left.value is not None and right.value is not None and _comparable(walk, left, op, right):
            return Const(_COMPARE[type(op)](left.value, right.value))
    elif isinstance(left, Const) and isinstance(right, Const):
        try:
            return Const(_COMPARE[type(op)](left.value, right.value))
        except TypeError:
            return _named(left, op, right)
    return _named(left, op, right)


def _same_constant(side: Value, op: ast.cmpop, right: Value) -> bool | None:
    """Whether one of two sides compares so; None where only running it would tell."""
    if not isinstance(op, (ast.Eq, ast.NotEq, ast.Is, ast.IsNot)):
        return None
    if type(side) is not type(right) and not any(same(value, NONE) for value in (side, right)):
        return None
    return (name_of(side) == name_of(right)) is isinstance(op, (ast.Eq, ast.Is))


def _if(test: Value, answer: bool | None) -> Value:
    return test if answer else negate(test)


def _contains(container: Value, value: Value) -> bool | None:
    """`phase in ("train", "val")`, where all of it is written out."""
    if not isinstance(value, Const):
        return None
    if isinstance(container, Const) and isinstance(container.value, str) and isinstance(value.value, str):
        return value.value in container.value
    if not isinstance(container, Seq) or container.perhaps:
        return None
    known = [item.value for item in container.items if isinstance(item, Const)]
    return value.value in known if len(known) == len(container.items) else None


def _turns_later(left: Num, op: ast.cmpop, right: Num) -> bool:
    """Whether `epoch > 5` has another answer at the end of a loop than where the walk leaves it."""
    if (left.ahead is None) is (right.ahead is None) or isinstance(op, (ast.Eq, ast.NotEq)):
        return False
    ones, others = left.ahead or (left.value,) * 2, right.ahead or (right.value,) * 2
    if None in (*ones, *others) or (left.invented or right.invented):
        return False
    walked, last = (_COMPARE[type(op)](*pair) for pair in zip(ones, others, strict=True))
    return walked is not last


def _counted(value: Num) -> Num:
    """By the one name that it has in every iteration."""
    return Num(value.value, True, value.units) if value.ahead is not None else value


def _comparable(walk: Walk, left: Num, op: ast.cmpop, right: Num) -> bool:
    """A size chosen by the walk may be met (`i + 1 == len(loader)`), but says nothing of being large."""
    if left.invented == right.invented:
        return True
    hard = right if left.invented else left
    soft = left if left.invented else right
    if isinstance(op, (ast.Eq, ast.NotEq)):
        # `i == 7` is met by every loader but the walk's, which is shorter.
        return "index" not in soft.units or hard.value is None or hard.value < walk.data_length
    if "accumulation" in soft.units or "index" in soft.units:
        return hard.value is not None and hard.value <= walk.window
    return hard.value == 0


def _identical(left: Value, right: Value) -> bool | None:
    for one, other in ((left, right), (right, left)):
        if isinstance(other, Const) and other.value is None:
            if isinstance(one, Const):
                return one.value is None
            if isinstance(one, ActorRef):
                return False if one.built else None
            if isinstance(one, (Grad, Tensor, Params, Seq, Map, Num, Func, Instance, Lib)):
                return False
            return None
    if isinstance(left, Const) and isinstance(right, Const):
        return left.value is right.value or bool(left.value == right.value)
    if isinstance(left, ActorRef) and isinstance(right, ActorRef):
        return left.id == right.id
    return None


def _named(left: Value, op: ast.cmpop, right: Value) -> Unknown:
    opposite = _OPPOSITE.get(type(op))
    name = (opposite or type(op)).__name__
    text = f"({name_of(left)} {name} {name_of(right)})"
    return Unknown(f"not {text}" if opposite else text)
