"""Checkpoints to go on from: what is put into them, and what the training has beside."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from gradclinic.facts import Saves
from gradclinic.static import words
from gradclinic.static.plain.restarts import starts_anew
from gradclinic.static.plain.scopes import Scope, over_epochs, scopes
from gradclinic.static.syntax import last_name, names_in, nodes_in

_PROGRESS = words.Pattern(r"epoch|step|iter", re.I)
_RESUMES = re.compile(r"""start_epoch|\[\s*["']epoch["']\s*\]|resume""")
_FRAMEWORKS = ("lightning", "Accelerator(", "deepspeed", "save_state(")
"""Words of files in which something else saves the rest."""


def may_tell(text: str) -> bool:
    trains = "torch.save(" in text and words.called("backward", text)
    return trains and not any(word in text for word in _FRAMEWORKS)


def read(tree: ast.Module, text: str, path: str) -> Iterator[Saves]:
    saved_anywhere = _saved_states(tree)
    exists = _existing(tree)
    resumes = "torch.load(" in text and bool(_RESUMES.search(text))
    for scope in scopes(tree):
        for call in scope.calls():
            content = _content(call, scope)
            if content is None or _keeps_the_best(call, scope):
                continue
            holds = _holds(content)
            if not {"model", "progress"} <= holds:
                continue
            if "optimizer" not in saved_anywhere:
                yield Saves(scope.at(call, path), holds | saved_anywhere, exists, resumes)
            elif resumes and "optimizer" in holds and starts_anew(tree, content):
                yield Saves(scope.at(call, path), holds | saved_anywhere, exists & {"schedule"})


def _keeps_the_best(call: ast.Call, scope: Scope) -> bool:
    """Written under that name, or only when a score beats the best so far."""
    return any(_speaks_of_best(given) for given in call.args[1:2]) or any(
        isinstance(node, ast.If)
        and _speaks_of_best(node.test)
        and any(call is part for branch in node.body for part in nodes_in(branch))
        for node in scope.nodes
    )


def _speaks_of_best(node: ast.expr) -> bool:
    return "best" in ast.unparse(node).lower()


def _content(call: ast.Call, scope: Scope) -> ast.Dict | None:
    """The dictionary that `torch.save` writes, given as it is or by a name of the same function."""
    if last_name(call.func) != "save" or names_in(call.func)[-1:] != ["torch"] or not call.args:
        return None
    given = call.args[0]
    if isinstance(given, ast.Name):
        made = [
            node.value
            for node in scope.nodes
            if isinstance(node, ast.Assign) and last_name(node.targets[0]) == given.id
        ]
        # Added to piece by piece, it cannot be read off one line.
        if len(made) != 1:
            return None
        given = made[0]
    complete = isinstance(given, ast.Dict) and all(isinstance(key, ast.Constant) for key in given.keys)
    return given if complete and isinstance(given, ast.Dict) else None


def _holds(content: ast.Dict) -> frozenset[str]:
    found: set[str] = set()
    for key, value in zip(content.keys, content.values, strict=True):
        name = str(key.value) if isinstance(key, ast.Constant) else ""
        if isinstance(value, ast.Call) and last_name(value.func) == "state_dict":
            found.add(
                _kind(last_name(value.func.value) if isinstance(value.func, ast.Attribute) else "", name)
            )
        elif _PROGRESS.search(name):
            found.add("progress")
    return frozenset(found)


def _kind(receiver: str, key: str = "") -> str:
    for pattern, kind in (
        (words.SCHEDULE_NAME, "schedule"),
        (words.SCALER_NAME, "scaler"),
        (words.OPTIMIZER_NAME, "optimizer"),
    ):
        if pattern.search(receiver) or (key and pattern.search(key)):
            return kind
    return "model"


def _saved_states(tree: ast.Module) -> frozenset[str]:
    """Whatever has its state asked for anywhere, and so may be saved in a file of its own."""
    return frozenset(
        _kind(last_name(node.func.value))
        for scope in scopes(tree)
        for node in scope.calls()
        if isinstance(node.func, ast.Attribute) and node.func.attr == "state_dict"
    )


def _existing(tree: ast.Module) -> frozenset[str]:
    """What of the training has a state that matters: moments, a schedule's position, a scale."""
    found: set[str] = set()
    for scope, node in [(one, call) for one in scopes(tree) for call in one.calls()]:
        kind = _made(node)
        if kind and kind not in found and not (scope.in_loop(node) and _is_made_each_epoch(scope, node)):
            found.add(kind)
    return frozenset(found)


def _made(call: ast.Call) -> str:
    """What of it a call makes; of an optimizer without moments nothing needs to be kept."""
    name = last_name(call.func)
    if name in words.TORCH_SCHEDULES:
        return "schedule"
    if name in words.GRAD_SCALERS:
        return "scaler"
    return "optimizer" if name in words.TORCH_OPTIMIZERS and (name != "SGD" or _has_momentum(call)) else ""


def _is_made_each_epoch(scope: Scope, call: ast.Call) -> bool:
    """What every epoch begins anew has nothing to go on from."""
    return any(
        isinstance(loop, ast.For) and over_epochs(loop) and call in nodes_in(loop) for loop in scope.nodes
    )


def _has_momentum(call: ast.Call) -> bool:
    return any(keyword.arg == "momentum" for keyword in call.keywords)
