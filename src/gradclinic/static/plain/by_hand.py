"""Modules of Lightning that optimise by hand: what they leave to the trainer, nobody does."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from gradclinic.facts import Location
from gradclinic.facts.rates import IdleSchedule
from gradclinic.static import words
from gradclinic.static.project_words import said
from gradclinic.static.syntax import last_name, names_in, nodes_in

_MAY_ADVANCE = frozenset({"lr_schedulers", "lr_scheduler_step", "lr_scheduler_configs", "setattr", "getattr"})
_ADVANCED = re.compile(rb"lr_schedulers\(|lr_scheduler_configs|lr_scheduler_step")
"""What a callback, an heir or a helper of the project would say that advances them."""


def may_tell(text: str) -> bool:
    if "automatic_optimization" not in text or "LightningModule" not in text:
        return False
    return not _ADVANCED.search(text.encode()) and any(name in text for name in words.TORCH_SCHEDULES)


def read(tree: ast.Module, text: str, path: str) -> Iterator[IdleSchedule]:
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    inherited = {last_name(base) for cls in classes for base in cls.bases}
    for cls in classes:
        # A base of the project's own, or an heir, may advance what this class builds.
        if [last_name(base) for base in cls.bases] != ["LightningModule"] or cls.name in inherited:
            continue
        parts = nodes_in(cls)
        if _is_manual(cls) and _steps_optimizers_alone(parts) and not _advanced_elsewhere(path):
            yield from _built(cls, path)


def _advanced_elsewhere(path: str) -> bool:
    return said(path, _ADVANCED)


def _is_manual(cls: ast.ClassDef) -> bool:
    """`self.automatic_optimization = False`, whatever the settings."""
    switches = [part for part in nodes_in(cls) if isinstance(part, ast.Assign) and _switches(part)]
    plainly = [
        part
        for method in cls.body
        if isinstance(method, ast.FunctionDef) and method.name == "__init__"
        for part in method.body
        if part in switches
    ]
    return len(switches) == len(plainly) == 1 and getattr(switches[0].value, "value", None) is False


def _switches(node: ast.Assign) -> bool:
    return last_name(node.targets[0]) == "automatic_optimization"


def _steps_optimizers_alone(parts: list[ast.AST]) -> bool:
    calls = [part for part in parts if isinstance(part, ast.Call)]
    if any(_MAY_ADVANCE.intersection(names_in(call.func)) or _hands_itself_on(call) for call in calls):
        return False
    if any(isinstance(part, ast.Assign) and last_name(part.value) == "step" for part in parts):
        return False  # `tick = self.schedule.step`
    stepped = [
        last_name(call.func.value)
        for call in calls
        if isinstance(call.func, ast.Attribute) and call.func.attr == "step"
    ]
    return bool(stepped) and all(
        words.OPTIMIZER_NAME.search(name) and not words.SCHEDULE_NAME.search(name) for name in stepped
    )


def _hands_itself_on(call: ast.Call) -> bool:
    given = any(isinstance(arg, ast.Name) and arg.id == "self" for arg in call.args)
    return given and last_name(call.func) != "super"


def _built(cls: ast.ClassDef, path: str) -> Iterator[IdleSchedule]:
    """The schedules that the class builds for `configure_optimizers` to give back."""
    for method in cls.body:
        if isinstance(method, ast.FunctionDef) and method.name in ("__init__", "configure_optimizers"):
            for part in nodes_in(method):
                if isinstance(part, ast.Call) and last_name(part.func) in words.TORCH_SCHEDULES:
                    where = Location(path, part.lineno, part.col_offset, f"{cls.name}.{method.name}")
                    yield IdleSchedule(last_name(part.func), where)
