"""autocast blocks: what runs inside, and in which precision."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from gradclinic.static import words
from gradclinic.static.conditions import truth
from gradclinic.static.expressions import evaluate
from gradclinic.static.supposing import settled
from gradclinic.static.syntax import last_name, names_in
from gradclinic.static.values import Bound, ClassDef, Const, Func, Lib, Unknown, Value
from gradclinic.static.walk import Walk

_CASTS = words.Pattern(r"^(?!no_|disable|without|un)\w*autocast(_?(ctx|context|manager))?$", re.I)
_PRECISIONS = {"bfloat16": "bfloat16", "float16": "float16", "half": "float16"}


def enter_autocast(walk: Walk, node: ast.expr) -> Callable[[], None] | None:
    """None for what is no autocast, or one that is switched off and around which there is none."""
    call = _chosen(node)
    if call is None:
        return None
    keywords = {keyword.arg: keyword.value for keyword in call.keywords}
    enabled = evaluate(walk, keywords["enabled"]) if "enabled" in keywords else Const(True)
    if truth(enabled) is False and not walk.autocast:
        return None
    func = evaluate(walk, call.func)
    of_torch = isinstance(func, Lib) and func.name.startswith("torch.")
    if not of_torch and not _is_known_to_cast(func):
        return None
    told = of_torch and call is node and settled(walk, enabled) is not False
    walk.autocast.append((_precision(call, keywords) if told else "", enabled))

    def leave() -> None:
        walk.autocast.pop()

    return leave


def _chosen(node: ast.expr) -> ast.Call | None:
    """The call of an autocast, be it one side of `autocast() if amp else nullcontext()`."""
    sides = (node.body, node.orelse) if isinstance(node, ast.IfExp) else (node,)
    calls = [side for side in sides if isinstance(side, ast.Call) and _CASTS.search(last_name(side.func))]
    return calls[0] if calls else None


def _is_known_to_cast(func: Value) -> bool:
    """Of the project's own or a library's: where it is in sight, it speaks of torch's."""
    if isinstance(func, Func):
        return _speaks(func.node)
    if isinstance(func, ClassDef):
        return _speaks(func.node) or any(_CASTS.search(base) for base in func.outside_bases())
    return isinstance(func, (Lib, Unknown, Bound))


def _speaks(node: ast.AST) -> bool:
    return any("autocast" in name for name in names_in(node))


def _precision(node: ast.Call, keywords: dict[str | None, ast.expr]) -> str:
    """bfloat16, float16, or nothing when the source does not tell."""
    given = keywords.get("dtype") or (node.args[1] if len(node.args) > 1 else None)
    return _PRECISIONS.get(last_name(given), "") if given is not None else ""
