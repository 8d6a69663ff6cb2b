"""Modules of Lightning that optimise by hand: what they leave to the trainer, nobody does."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradclinic.facts import Location
from gradclinic.facts.rates import IdleSchedule
from gradclinic.static import words
from gradclinic.static.syntax import last_name, names_in, nodes_in

_MAY_ADVANCE = frozenset({"lr_schedulers", "lr_scheduler_step", "lr_scheduler_configs", "setattr", "getattr"})


def may_tell(text: str) -> bool:
    if "automatic_optimization" not in text or "LightningModule" not in text:
        return False
    return "lr_schedulers" not in text and any(name in text for name in words.TORCH_SCHEDULES)


def read(tree: ast.Module, text: str, path: str) -> Iterator[IdleSchedule]:
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    inherited = {last_name(base) for cls in classes for base in cls.bases}
    for cls in classes:
        # A base of the project's own, or an heir, may advance what this class builds.
        if [last_name(base) for base in cls.bases] != ["LightningModule"] or cls.name in inherited:
            continue
        parts = nodes_in(cls)
        if any(map(_is_manual, parts)) and _steps_optimizers_alone(parts):
            yield from _built(cls, path)


def _is_manual(node: ast.AST) -> bool:
    """`self.automatic_optimization = False`."""
    return (
        isinstance(node, ast.Assign)
        and last_name(node.targets[0]) == "automatic_optimization"
        and isinstance(node.value, ast.Constant)
        and node.value.value is False
    )


def _steps_optimizers_alone(parts: list[ast.AST]) -> bool:
    calls = [part for part in parts if isinstance(part, ast.Call)]
    if any(_MAY_ADVANCE.intersection(names_in(call.func)) for call in calls):
        return False
    stepped = [
        last_name(call.func.value)
        for call in calls
        if isinstance(call.func, ast.Attribute) and call.func.attr == "step"
    ]
    return bool(stepped) and all(
        words.OPTIMIZER_NAME.search(name) and not words.SCHEDULE_NAME.search(name) for name in stepped
    )


def _built(cls: ast.ClassDef, path: str) -> Iterator[IdleSchedule]:
    """The schedules that the class builds for `configure_optimizers` to give back."""
    for method in cls.body:
        if isinstance(method, ast.FunctionDef) and method.name in ("__init__", "configure_optimizers"):
            for part in nodes_in(method):
                if isinstance(part, ast.Call) and last_name(part.func) in words.TORCH_SCHEDULES:
                    where = Location(path, part.lineno, part.col_offset, f"{cls.name}.{method.name}")
                    yield IdleSchedule(last_name(part.func), where)
