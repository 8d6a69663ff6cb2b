"""Schedules that begin again where a run is resumed: neither saved, nor told how far the run has come."""

from __future__ import annotations

import ast
import re

from gradclinic.static import words
from gradclinic.static.plain.scopes import scopes
from gradclinic.static.syntax import last_name, names_in

_COUNTS = words.names(
    "StepLR MultiStepLR CosineAnnealingLR CosineAnnealingWarmRestarts OneCycleLR CyclicLR PolynomialLR "
    "LinearLR"
)
"""Those whose rate depends on how often they were advanced, beside the rate that an optimizer saves."""
_POSITION = words.Pattern(r"start|resume|begin|last_epoch|init_epoch|from_epoch", re.I)


def starts_anew(tree: ast.Module, content: ast.Dict) -> bool:
    """Whether all schedules of the file count from zero after the optimizer was loaded."""
    calls = [call for scope in scopes(tree) for call in scope.calls()]
    made = [call for call in calls if _makes_schedule(call)]
    if not made or not all(last_name(call.func) in _COUNTS for call in made):
        return False
    if any(_POSITION.search(name) for call in made for name in _told(call)):
        return False
    loads = [call for call in calls if last_name(call.func) == "load_state_dict" and _receiver(call)]
    if not any(words.OPTIMIZER_NAME.search(_receiver(call)) for call in loads):
        return False
    names = {_name(tree, call) for call in made}
    if "" in names or any(_is_told(call, names) for call in calls):
        return False
    kept = {last_name(value) for value in content.values} | set(map(str, _keys(content)))
    if names & kept or any(words.SCHEDULE_NAME.search(name) for name in kept):
        return False
    nodes = [node for scope in scopes(tree) for node in scope.nodes]
    return not any(_catches_up(node, names) or _is_gathered(node, names) for node in nodes)


def _makes_schedule(call: ast.Call) -> bool:
    called = last_name(call.func)
    return called in words.TORCH_SCHEDULES or bool(
        words.SCHEDULE_BUILDERS.match(called) or re.search(r"(LR|Scheduler|Schedule)$", called)
    )


def _told(call: ast.Call) -> list[str]:
    values = [*call.args, *(keyword.value for keyword in call.keywords)]
    names = [name for value in values for name in names_in(value)]
    return [*names, *(keyword.arg or "start" for keyword in call.keywords)]


def _receiver(call: ast.Call) -> str:
    return last_name(call.func.value) if isinstance(call.func, ast.Attribute) else ""


def _name(tree: ast.Module, call: ast.Call) -> str:
    """What a schedule is called; nothing for one that is put somewhere else."""
    for scope in scopes(tree):
        for node in scope.nodes:
            if isinstance(node, ast.Assign) and node.value is call and len(node.targets) == 1:
                target = node.targets[0]
                return last_name(target) if isinstance(target, (ast.Name, ast.Attribute)) else ""
    return ""


def _is_told(call: ast.Call, names: set[str]) -> bool:
    """`schedule.step(epoch)`, `schedule.load_state_dict(...)`, `resume(model, schedule)`."""
    if _receiver(call) in names:
        method = last_name(call.func)
        return method in ("state_dict", "load_state_dict") or (method == "step" and bool(call.args))
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    return any(last_name(value) in names for value in given)


def _is_gathered(node: ast.AST, names: set[str]) -> bool:
    """`others = [scheduler, scaler]`, `for part in (model, scheduler)`: each may be saved there."""
    held = node.iter if isinstance(node, ast.For) else node if not isinstance(node, ast.Tuple) else None
    parts: list[ast.expr] = []
    if isinstance(held, (ast.List, ast.Tuple)):
        parts = held.elts
    elif isinstance(held, ast.Dict):
        parts = held.values
    return any(last_name(part) in names for part in parts)


def _keys(content: ast.Dict) -> list[object]:
    return [key.value for key in content.keys if isinstance(key, ast.Constant)]


def _catches_up(node: ast.AST, names: set[str]) -> bool:
    """`for _ in range(start_epoch): schedule.step()`, `if epoch < start: schedule.step(); continue`, or its
    position set by hand."""
    if isinstance(node, ast.Attribute):
        return node.attr in ("last_epoch", "_step_count") and last_name(node.value) in names
    if not isinstance(node, (ast.For, ast.While, ast.If)):
        return False
    left_out = isinstance(node, ast.If) and isinstance(node.body[-1], ast.Continue)
    body = node.body[:-1] if left_out else node.body
    merely = not isinstance(node, ast.If) and all(map(_is_step, body))
    written = {name for part in body for name in names_in(part)}
    return (left_out or merely) and "backward" not in written and bool(names & written)


def _is_step(node: ast.stmt) -> bool:
    called = node.value if isinstance(node, ast.Expr) else None
    return isinstance(called, ast.Call) and last_name(called.func) == "step"
