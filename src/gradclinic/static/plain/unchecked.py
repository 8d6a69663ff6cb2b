"""Steps on gradients that were unscaled, and that nobody has asked whether they overflowed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from gradclinic.facts.scaling import UncheckedStep
from gradclinic.frozen import frozen
from gradclinic.static import words
from gradclinic.static.plain.scopes import scopes
from gradclinic.static.syntax import children, last_name, names_in, nodes_in

_ASKS = re.compile(
    r"finite|nan(?!o)|(^|_)inf(s|_|$)|isinf|overflow|skip|valid|get_scale|retry|(^|_)ok($|_)", re.I
)
"""Whoever says so between the two looks at the gradients himself."""
_KNOWS_SCALERS = re.compile(
    r"found_inf|_step_supports_amp_scaling|optim\w*\.grad_scaler\b|_per_optimizer_states"
)
"""An optimizer that is told what the scaler found skips the step by itself."""
_MAY_NOT_OVERFLOW = re.compile(
    r"isfinite|isnan|isinf|nan_to_num|nonfinite|step_pre_hook|enabled=False|init_scale=1(\.0*)?[,)]|bfloat16|bf16|"
    r"(?i:amp\w*\s*=\s*False)|def unscale_|class \w+\([\w.]*(?:Adam\w*|SGD|RMSprop|Optimizer)\)"
)
"""Signs that gradients are looked at elsewhere in the file, or carry no scale that could overflow."""
_MERELY_CLIPS = re.compile(
    r"clip|norm|parameters$|^(print|log|info|debug|append|extend|item|float|int|str|len|list|min|max|round|format|"
    r"add_scalar|set_postfix|record|record_function|autocast|detach|cpu|filter|chain|values|keys|items|range|"
    r"join|no_grad|barrier|synchronize|is_available|get|isinstance|hasattr|getattr|is_main_process)$",
    re.I,
)
"""What may be called between them without a word on whether the step is to be taken."""
_LEAVES = (
    ast.Raise, ast.Return, ast.Continue, ast.Break, ast.Try, ast.While, ast.For, ast.AsyncFor, ast.Assert,
    ast.Yield, ast.FunctionDef, ast.Lambda, ast.Match,
)  # fmt: skip


@frozen
class _Place:
    """A statement, with the statements before and after it in its block, out to the body of its function."""

    node: ast.stmt
    block: tuple[ast.stmt, ...]
    within: _Place | None
    otherwise: bool = False
    """It is in the else of what it is within."""

    def before(self) -> tuple[ast.stmt, ...]:
        return self.block[: self.block.index(self.node)]

    def after(self) -> tuple[ast.stmt, ...]:
        return self.block[self.block.index(self.node) + 1 :]


def may_tell(text: str) -> bool:
    if ".unscale_(" not in text or ".step()" not in text:
        return False
    return _KNOWS_SCALERS.search(text) is None and _MAY_NOT_OVERFLOW.search(text) is None


def read(tree: ast.Module, text: str, path: str) -> Iterator[UncheckedStep]:
    for scope in scopes(tree):
        if not any(last_name(call.func) == "unscale_" for call in scope.calls()):
            continue
        body = [node for node in children(scope.node) if isinstance(node, ast.stmt)]
        places = list(_places(tuple(body), None))
        told: set[ast.stmt] = set()
        for unscaled in places:
            pair = _unscales(unscaled.node)
            if pair is None:
                continue
            scaler, optimizer = pair
            step = _stepped_by_itself(unscaled, places, *pair)
            if step is not None and step.node not in told and _updates_later(scaler, step, scope.calls()):
                told.add(step.node)
                where = scope.at(step.node, path)
                yield UncheckedStep(scaler, optimizer, scope.at(unscaled.node, path), where)


def _places(
    block: tuple[ast.stmt, ...], within: _Place | None, *, otherwise: bool = False
) -> Iterator[_Place]:
    for node in block:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        place = _Place(node, block, within, otherwise)
        yield place
        for name in ("body", "orelse", "finalbody"):
            inner = getattr(node, name, None)
            if isinstance(inner, list) and inner:
                yield from _places(tuple(inner), place, otherwise=name != "body")


def _unscales(node: ast.stmt) -> tuple[str, str] | None:
    """`scaler.unscale_(optimizer)`: the two, as they are written."""
    call = _called(node)
    if call is None or last_name(call.func) != "unscale_" or len(call.args) != 1 or call.keywords:
        return None
    if not isinstance(call.func, ast.Attribute) or not words.SCALER_NAME.search(last_name(call.func.value)):
        return None
    return ast.unparse(call.func.value), ast.unparse(call.args[0])


def _called(node: ast.stmt) -> ast.Call | None:
    return node.value if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) else None


def _stepped_by_itself(unscaled: _Place, places: list[_Place], scaler: str, optimizer: str) -> _Place | None:
    """The step that is taken whenever the gradients were unscaled before, with nothing asked in between."""
    for step in places:
        call = _called(step.node)
        if step.node.lineno <= unscaled.node.lineno or call is None or call.args or call.keywords:
            continue
        if not isinstance(call.func, ast.Attribute) or call.func.attr != "step":
            continue
        if ast.unparse(call.func.value) != optimizer:
            continue
        between = _between(unscaled, step)
        if between is not None and not any(map(_asks, between)):
            return step
    return None


def _between(unscaled: _Place, step: _Place) -> list[ast.stmt] | None:
    """What is run from the one to the other; None where the other may not be run then."""
    between = list(unscaled.after())
    inside: _Place | None = unscaled.within
    outer, first = inside, unscaled
    while True:
        if step.block is first.block:
            return _up_to(step, between)
        # `if amp: scaler.unscale_(optimizer)`, and the same asked again for the step
        same = step.within
        if outer is not None and same is not None and _same_question(first, step):
            until = _up_to(same, [*between, *outer.after()])
            return None if until is None else [*until, *step.before()]
        if outer is None or not isinstance(outer.node, (ast.If, ast.With)):
            return None
        between += outer.after()
        first, outer = outer, outer.within


def _up_to(step: _Place, statements: list[ast.stmt]) -> list[ast.stmt] | None:
    return statements[: statements.index(step.node)] if step.node in statements else None


def _same_question(one: _Place, other: _Place) -> bool:
    """Whether both are what two `if` of one block do where the same holds."""
    if one.within is None or other.within is None or one.otherwise or other.otherwise:
        return False
    first, second = one.within.node, other.within.node
    if one.within.block is not other.within.block or first is second:
        return False
    alike = isinstance(first, ast.If) and isinstance(second, ast.If)
    return alike and ast.unparse(first.test) == ast.unparse(second.test)  # type: ignore[attr-defined]


def _asks(statement: ast.stmt) -> bool:
    """Whether it may look at the gradients, leave the step out, or do what nobody knows."""
    if any(isinstance(part, _LEAVES) for part in nodes_in(statement)):
        return True
    calls = [part for part in nodes_in(statement) if isinstance(part, ast.Call)]
    settings = [keyword.arg or "" for call in calls for keyword in call.keywords]
    if any(_ASKS.search(name) for name in (*names_in(statement), *settings)):
        return True
    return any(not _MERELY_CLIPS.search(last_name(call.func)) for call in calls)


def _updates_later(scaler: str, step: _Place, calls: list[ast.Call]) -> bool:
    return any(
        isinstance(call.func, ast.Attribute)
        and call.func.attr == "update"
        and call.lineno > step.node.lineno
        and ast.unparse(call.func.value) == scaler
        for call in calls
    )
