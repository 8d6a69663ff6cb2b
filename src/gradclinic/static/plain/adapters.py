"""Adapters over models with a head that was never trained before."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from gradclinic.facts import Location
from gradclinic.facts.adapters import HeadLeftOut
from gradclinic.static.plain.scopes import Scope, scopes
from gradclinic.static.syntax import last_name, names_in

WORDS = ("get_peft_model(",)
_CONFIGURES = re.compile(r"^(Lora|LoHa|LoKr|AdaLora|IA3|OFT|BOFT|Vera)Config$")
_NEW_HEAD = re.compile(r"For(Sequence|Token|Image|Audio|Video)Classification$|ForMultipleChoice$")
_CARED_FOR = frozenset({"SEQ_CLS", "TOKEN_CLS"})
"""Tasks for which the adapter saves the classifier by itself."""


def read(tree: ast.Module, text: str, path: str) -> Iterator[HeadLeftOut]:
    found = [(scope, call) for scope in scopes(tree) for call in scope.calls()]
    heads = [name for _, call in found if (name := _new_head(call))]
    saves = [(scope, call) for scope, call in found if last_name(call.func) == "save_pretrained"]
    if not heads or not saves:
        return
    for scope, call in found:
        if _CONFIGURES.match(last_name(call.func)) and _saves_adapter_only(call):
            yield HeadLeftOut(scope.at(call, path), heads[0], _first(saves, path))


def _first(saves: list[tuple[Scope, ast.Call]], path: str) -> Location:
    scope, call = saves[0]
    return scope.at(call, path)


def _new_head(call: ast.Call) -> str:
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "from_pretrained":
        return ""
    name = last_name(call.func.value)
    return name if _NEW_HEAD.search(name) else ""


def _saves_adapter_only(call: ast.Call) -> bool:
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    if None in given or "modules_to_save" in given:
        return False
    task = given.get("task_type")
    if task is None:
        return True
    told = {*names_in(task), *([task.value] if isinstance(task, ast.Constant) else [])}
    return "FEATURE_EXTRACTION" in told and not told & _CARED_FOR
