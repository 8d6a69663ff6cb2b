"""autocast blocks: what runs inside, and in which precision."""

from __future__ import annotations

import ast
from collections.abc import Callable

from gradclinic.static.expressions import evaluate
from gradclinic.static.syntax import last_name
from gradclinic.static.values import Const, Lib
from gradclinic.static.walk import Walk

_PRECISIONS = {"bfloat16": "bfloat16", "float16": "float16", "half": "float16"}


def enter_autocast(walk: Walk, node: ast.expr) -> Callable[[], None] | None:
    """None for what is no autocast of torch, or one that is switched off."""
    if not isinstance(node, ast.Call) or last_name(node.func) != "autocast":
        return None
    func = evaluate(walk, node.func)
    if not isinstance(func, Lib) or not func.name.startswith("torch."):
        return None
    keywords = {keyword.arg: keyword.value for keyword in node.keywords}
    if "enabled" in keywords:
        enabled = evaluate(walk, keywords["enabled"])
        if isinstance(enabled, Const) and not enabled.value:
            return None
    walk.autocast.append(_precision(node, keywords))

    def leave() -> None:
        walk.autocast.pop()

    return leave


def _precision(node: ast.Call, keywords: dict[str | None, ast.expr]) -> str:
    """bfloat16, float16, or nothing when the source does not tell."""
    given = keywords.get("dtype") or (node.args[1] if len(node.args) > 1 else None)
    return _PRECISIONS.get(last_name(given), "") if given is not None else ""
