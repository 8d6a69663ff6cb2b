"""Numbers, periods and the scaling of losses."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from gradclinic.static import words
from gradclinic.static.conditions import name_of
from gradclinic.static.syntax import is_count, last_name
from gradclinic.static.values import (
    NOTHING,
    Const,
    Func,
    Grad,
    Keys,
    Num,
    Params,
    Seq,
    Tensor,
    Unknown,
    Value,
)
from gradclinic.static.walk import Walk
from gradclinic.static.words import Pattern

_MEETS = Pattern(r"""(not )?\(([^'"]+) Eq (?!None\b|True\b|False\b)[^'"\d][^'"]*\)$""")
_PASSES = Pattern(
    r"(?!.*(?:warm|burn|start|begin|after|delay|min|since))(not )?\(<index[^<>]*> (Lt|Gt) .*\)$", re.I
)
"""`i >= steps - 1`, as `name_of` gives it."""
_NAMES_THE_END = Pattern(
    r"(^|_)(last|final)(_|$)|^(is_|at_)?(new_epoch|epoch_(end|done|over)|end_of_(epoch|data))$"
)
_RANKS = Pattern(r"world_size|dp_size|(n|num)_gpus?\b", re.I)
MOST_HELD = 64
"""Items of a collection that are kept apart."""
LONGEST_PERIOD = 8
_UNCLEAR = "?"
"""A factor that may be anything."""
"""Longer periods are walked as if they were the window: nothing is learned from more iterations."""

_INTEGER: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b if b else 0,
    ast.Mod: lambda a, b: a % b if b else 0,
}


def binary(walk: Walk, left: Value, op: ast.operator, right: Value) -> Value:
    if isinstance(left, Tensor) or isinstance(right, Tensor):
        return _tensor(walk, left, op, right)
    if isinstance(left, Grad) or isinstance(right, Grad):
        return left if isinstance(left, Grad) else right
    if isinstance(op, ast.Mod) and not isinstance(left, Const):
        return _modulo(walk, left, right)
    if isinstance(left, Num) and isinstance(right, Num):
        _note_division(walk, left, op, right)
        return _number(left, op, right)
    if isinstance(op, ast.Add) and isinstance(left, Seq) and isinstance(right, Seq):
        return Seq([*left.items, *right.items][:MOST_HELD])
    if isinstance(op, ast.Add) and isinstance(left, Params) and isinstance(right, Params):
        models = None if left.models is None or right.models is None else left.models | right.models
        return Params(models, left.optimizers | right.optimizers)
    units = _units(left) | _units(right)
    if units and not isinstance(left, Seq) and not isinstance(right, Seq):
        return Num(None, units=_resulting(left, op, right, units))
    return Unknown(f"({name_of(left)} {type(op).__name__} {name_of(right)})")


def _note_division(walk: Walk, left: Num, op: ast.operator, right: Num) -> None:
    """`max_train_steps / len(loader)` are epochs where each batch is such a step, whatever it is called."""
    if isinstance(op, (ast.Div, ast.FloorDiv)) and "update" in left.units and right.units == {"batch"}:
        walk.recorder.counts_batches = True


def _units(value: Value) -> Keys:
    return value.units if isinstance(value, Num) else NOTHING


def _resulting(left: Value, op: ast.operator, right: Value, units: Keys) -> Keys:
    """`len(loader) // accumulation` counts updates, `len(dataset) // batch_size` batches."""
    if isinstance(op, ast.Mult) and units == {"epoch"} and not (_units(left) and _units(right)):
        return NOTHING  # `epochs * 33000`: of what there are so many in an epoch is not told
    if not isinstance(op, (ast.FloorDiv, ast.Div)):
        return units
    if "accumulation" in _units(right):
        return units - {"accumulation"} | {"update"}
    if "sample" in _units(left):
        return units - {"sample"} | {"batch"}
    # By what else batches may be divided is not known: it may well be a window under another name.
    return NOTHING if "batch" in _units(left) and not _units(right) else units


def _number(left: Num, op: ast.operator, right: Num) -> Value:
    units = _resulting(left, op, right, left.units | right.units)
    invented = left.invented or right.invented
    compute = _INTEGER.get(type(op))
    if left.value is None or right.value is None:
        counted = left if right.value is None else right
        if isinstance(op, ast.Add) and "index" in counted.units and counted.value is not None:
            return Num(counted.value, True, counted.units)  # `i + epoch * batches`: it counts on from there
        return Num(None, units=units)
    if compute is None:
        if isinstance(op, ast.Div) and right.value:
            exact = left.value // right.value
            return (
                Num(exact, invented, units) if exact * right.value == left.value else Num(None, units=units)
            )
        return Num(None, units=units)
    return Num(compute(left.value, right.value), invented, units, _ahead(left, op, right))


def _ahead(left: Num, op: ast.operator, right: Num) -> tuple[int, int] | None:
    """What `epoch + 1` comes to, of an `epoch` that is counted further than the walk goes."""
    if left.ahead is None or right.value is None or not isinstance(op, (ast.Add, ast.Sub)):
        return None
    shift = right.value if isinstance(op, ast.Add) else -right.value
    return left.ahead[0] + shift, left.ahead[1] + shift


def _modulo(walk: Walk, left: Value, right: Value) -> Value:
    period = period_of(walk, right)
    if isinstance(left, Num) and left.value is not None and period is not None:
        return Num(left.value % period)
    return Unknown(f"({name_of(left)} Mod {name_of(right)})")


def period_of(walk: Walk, value: Value) -> int | None:
    """The period to walk with; the window stands for one that is unknown or long."""
    if isinstance(value, Num) and value.value is not None:
        if value.value == 0:
            return None
        return value.value if abs(value.value) <= LONGEST_PERIOD else walk.window
    return walk.window


def compare_period(walk: Walk, node: ast.Compare, left: Value, op: ast.cmpop, right: Value) -> Value | None:
    """`i % k == k - 1` where the walk put another period in the place of k."""
    if not (isinstance(node.left, ast.BinOp) and isinstance(node.left.op, ast.Mod)) or len(node.ops) != 1:
        return None
    if not isinstance(op, (ast.Eq, ast.NotEq)) or not isinstance(left, Num) or left.value is None:
        return None
    last = isinstance(node.comparators[0], ast.BinOp) and isinstance(node.comparators[0].op, ast.Sub)
    if isinstance(right, Num) and right.value is not None and right.value < walk.window and not last:
        return None
    if isinstance(right, Num) and right.value is not None and 1 < right.value < LONGEST_PERIOD:
        return None
    return Const((left.value == walk.window - 1) == isinstance(op, ast.Eq))


def as_one(value: Value) -> Value:
    """What is added to a sum with a limit: of unknown amounts, so many of them as make a window reach it."""
    if isinstance(value, Num) and value.value is not None and not value.invented:
        return value
    return Num(1, invented=True)


_TURNED = {ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE}


def compare_tally(walk: Walk, node: ast.Compare, left: Value, op: ast.cmpop, right: Value) -> Value | None:
    """`seen >= limit` or `limit <= seen`, where the walk cannot come up to the limit by itself."""
    asks: type[ast.cmpop] = type(op)
    if last_name(node.left) not in walk.survey.tallies:
        if last_name(node.comparators[0]) not in walk.survey.tallies or len(node.ops) > 1:
            return None
        left, asks, right = right, _TURNED.get(asks, asks), left
    if not isinstance(left, Num) or left.value is None:
        return None
    limit = right.value if isinstance(right, Num) and not right.invented else None
    if not left.invented and limit is not None and limit <= walk.period:
        return None
    if asks in (ast.GtE, ast.Gt, ast.Eq):
        return Const(left.value >= walk.window)
    return Const(left.value < walk.window) if asks in (ast.Lt, ast.LtE, ast.NotEq) else None


def asks_for_end(walk: Walk, node: ast.BoolOp, part: ast.expr, value: Value) -> bool:
    """`(i + 1) % k == 0 or i + 1 == batches`, and its opposite: a count meets what is not known but once, and
    passes it at the end.

    Beside a period, that is where its last window ends; so is what is called so: `or is_last_batch`.
    """
    others = [other for other in node.values if other is not part]
    by_period = any(isinstance(other, ast.Compare) and _asks_for_period(walk, other) for other in others)
    if by_period and isinstance(node.op, ast.Or) and _NAMES_THE_END.search(last_name(part)):
        return True
    if not isinstance(value, Unknown):
        return False
    passed = _PASSES.match(value.path) if by_period else None
    if passed is not None and ((passed[1] is None) is (passed[2] == "Gt")) is isinstance(node.op, ast.Or):
        return True
    met = _MEETS.match(value.path)
    if met is None or (met[1] is None) is not isinstance(node.op, ast.Or):
        return False
    if by_period:
        return True
    return met[2].startswith("<index") and walk.counts_batches() and any(map(_is_period, others))


def _asks_for_period(walk: Walk, asked: ast.Compare) -> bool:
    sides = (last_name(asked.left), last_name(asked.comparators[0]))
    return is_count(asked.left) or any(side in walk.survey.tallies for side in sides)


def _is_period(part: ast.expr) -> bool:
    """`full`, or `not full`: by its name alone, where the number of batches is asked for beside it."""
    named = part.operand if isinstance(part, ast.UnaryOp) else part
    return isinstance(named, ast.Name)


def of_this_batch(walk: Walk, path: str) -> Unknown:
    """A number that is counted out of the batch at hand: `mask.sum()`."""
    return Unknown(f"{path}<{_here(walk)}>") if walk.loops else Unknown(path)


def _here(walk: Walk) -> str:
    """The innermost loop being run; what is counted outside of it is of more than its batch."""
    return f"of {walk.loops[-1][2].lineno}" if walk.loops else ""  # type: ignore[attr-defined]


def written(walk: Walk, left: Value, op: ast.operator, right: Value, divisor: ast.expr) -> Value:
    """`loss / seen`, where `seen` counts up within the window: by 1, by 2, ... is not by its length."""
    result = binary(walk, left, op, right)
    if not isinstance(op, ast.Div) or not isinstance(left, Tensor) or not isinstance(result, Tensor):
        return result
    if left.scaled is False and last_name(divisor) in walk.survey.tallies and _is_tally(walk, divisor):
        result.scaled, result.divided_by = False, last_name(divisor)
    return result


def _is_tally(walk: Walk, divisor: ast.expr) -> bool:
    """Whether it is what is counted: `self.settings.seen` is not `self.seen`, nor what a helper is given."""
    running = walk.frame.owner
    given = running.node.args if isinstance(running, Func) else None
    parameters = [*given.args, *given.kwonlyargs] if given else []
    return ast.unparse(divisor) in walk.survey.tallied and all(
        parameter.arg != last_name(divisor) for parameter in parameters
    )


def _tensor(walk: Walk, left: Value, op: ast.operator, right: Value) -> Tensor:
    if isinstance(left, Tensor) and isinstance(right, Tensor) and isinstance(op, (ast.Add, ast.Sub)):
        return combine(left, right)
    tensor, other = (left, right) if isinstance(left, Tensor) else (right, left)
    assert isinstance(tensor, Tensor)
    result = Tensor(tensor.models, tensor.scaled, tensor.scaler, tensor.loss)
    if isinstance(other, Tensor):
        result.models = _together(tensor.models, other.models)
        result.scaled = True if isinstance(op, ast.Div) else tensor.scaled or other.scaled
        if isinstance(op, ast.Mult) and tensor.loss is not other.loss and not result.scaled:
            result.loss, result.scaled, result.weight = True, None, _UNCLEAR  # what a sample counts for
    elif isinstance(op, (ast.Add, ast.Sub)):
        if isinstance(other, Unknown):
            result.models = None
    elif tensor.scaled is not True:
        result.scaled = _scaled_by(op, other, divides=isinstance(left, Tensor))
        name = name_of(other)
        if result.scaled and tensor.scaled is None and not tensor.weight and _counts_this_batch(walk, name):
            result.scaled = False  # a sum over its own batch: what it was is a mean now
        elif result.scaled is None and _RANKS.search(name):
            result.scaled = tensor.scaled  # ranks average what they are given
        elif result.scaled is None and isinstance(other, (Unknown, Const, Num)):
            # Of a term it is a weight, if it is a setting; of a sum it may be its share in the window.
            term = tensor.scaled is False and _is_setting(name)
            result.weight = name if term else _UNCLEAR
    return result


def _counts_this_batch(walk: Walk, name: str) -> bool:
    """`mask.sum()` of the loop being run, and nothing beside it that a window may be counted by."""
    return bool(walk.loops) and f"<{_here(walk)}>" in name and " Mult " not in name and " Div " not in name


def _is_setting(name: str) -> bool:
    """`args.share`, `1 - self.share`: what is handed in, or computed before, may hold the window already."""
    computed = re.search(r"\[| Div | Mult ", name)
    return "." in name and not computed and not words.ACCUMULATION_NAME.search(name)


def _scaled_by(op: ast.operator, factor: Value, *, divides: bool) -> bool | None:
    """Whether a loss multiplied or divided by `factor` has been scaled to the window."""
    known = factor.value if isinstance(factor, (Const, Num)) else None
    if isinstance(factor, Num) and factor.invented:
        known = None
    if known == 1:
        return False
    if isinstance(op, (ast.Div, ast.FloorDiv)) and divides:
        return True
    return None


def averaged(tensor: Tensor) -> Tensor:
    """A mean over the batch, unless what it is of was weighted: by the share of the window, it may be."""
    scaled = tensor.scaled if tensor.weight else tensor.scaled or False
    return Tensor(tensor.models, scaled, tensor.scaler, tensor.loss, tensor.weight)


def combine(left: Tensor, right: Tensor) -> Tensor:
    """The sum of two losses is scaled only if both are. Weights that differ are those of the two."""
    known = left.weight and right.weight and _UNCLEAR not in (left.weight, right.weight)
    weighted = bool(known) and left.weight != right.weight
    if left.scaled is False or right.scaled is False or weighted:
        scaled: bool | None = False
    else:
        scaled = None if left.scaled is None or right.scaled is None else True
    if not left.loss or not right.loss:
        scaled = left.scaled if left.loss else right.scaled if right.loss else scaled
    return Tensor(
        _together(left.models, right.models), scaled, left.scaler or right.scaler, left.loss or right.loss
    )


def _together(one: Keys | None, other: Keys | None) -> Keys | None:
    return None if one is None or other is None else one | other


def with_unit(value: Num, name: str) -> Num:
    """`epochs = 3` counts epochs, `accumulate = 4` the batches of a window."""
    if value.units:
        return value
    for pattern, unit in ((words.ACCUMULATION_NAME, "accumulation"), (words.EPOCH_NAME, "epoch")):
        if pattern.search(name):
            return Num(value.value, value.invented, frozenset({unit}))
    return value
