"""Adapters over models with a head that was never trained before."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradclinic.facts import Location
from gradclinic.facts.adapters import HeadLeftOut
from gradclinic.static import words
from gradclinic.static.plain.scopes import Scope, scopes
from gradclinic.static.syntax import last_name, names_in

_CONFIGURES = words.Pattern(r"^(Lora|LoHa|LoKr|AdaLora|IA3|OFT|BOFT|Vera)Config$")
_NEW_HEAD = words.Pattern(r"For(Sequence|Token|Image|Audio|Video)Classification$|ForMultipleChoice$")
_MODEL = words.Pattern(r"^(?!(Auto)?Peft)[A-Z]\w*(Model|For[A-Z]\w*)$")
_CARED_FOR = frozenset({"SEQ_CLS", "TOKEN_CLS"})
"""Tasks for which the adapter saves the classifier by itself."""


def may_tell(text: str) -> bool:
    return "get_peft_model(" in text and "save_pretrained" in text


def read(tree: ast.Module, text: str, path: str) -> Iterator[HeadLeftOut]:
    found = [(scope, call) for scope in scopes(tree) for call in scope.calls()]
    models = [(scope, name) for scope, call in found if (name := _pretrained(call))]
    saves = [(scope, call) for scope, call in found if last_name(call.func) == "save_pretrained"]
    if not saves:
        return
    for scope, call in found:
        if _CONFIGURES.match(last_name(call.func)) and _saves_adapter_only(call):
            beside = [name for owner, name in models if owner is scope]
            # Which model wears the adapter is not followed: one without a new head is enough to doubt.
            under = beside or [name for _, name in models]
            if under and all(_NEW_HEAD.search(name) for name in under):
                yield HeadLeftOut(scope.at(call, path), under[0], _first(saves, path))


def _first(saves: list[tuple[Scope, ast.Call]], path: str) -> Location:
    scope, call = saves[0]
    return scope.at(call, path)


def _pretrained(call: ast.Call) -> str:
    """The class of the model that is loaded without an adapter."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "from_pretrained":
        return ""
    name = last_name(call.func.value)
    return name if _MODEL.match(name) else ""


def _saves_adapter_only(call: ast.Call) -> bool:
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    if None in given or "modules_to_save" in given:
        return False
    start = given.get("init_lora_weights")
    if isinstance(start, ast.Constant) and start.value is False:
        return False  # random adapters are made to test with, not to train
    task = given.get("task_type")
    if task is None:
        return True
    told = {*names_in(task), *([task.value] if isinstance(task, ast.Constant) else [])}
    return "FEATURE_EXTRACTION" in told and not told & _CARED_FOR
