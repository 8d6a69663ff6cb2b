"""What source says of an optimizer or a schedule where the walk does not come: who else may step it."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from gradclinic.static import words
from gradclinic.static.syntax import last_name, nodes_in
from gradclinic.static.values import FunctionNode

Functions: TypeAlias = Mapping[str, Sequence[FunctionNode]]
DEEPEST_HANDING = 3
"""Functions in a row that hand it on."""

_HARMLESS = frozenset(
    {
        "zero_grad",
        "param_groups",
        "state_dict",
        "load_state_dict",
        "add_param_group",
        "state",
        "defaults",
        "get_last_lr",
        "get_lr",
        "last_epoch",
    }
)
_LOOKS_ON = words.Pattern(
    r"_?(save|load|resume|restore|print|log)_\w+$|_?(adjust|set|change|update|decay|get)_(\w+_)?(lr|(learning_)?rate)s?$"
)
"""Functions that by their names write an optimizer down, read it back, or set its rate."""
_ADVANCES = words.Pattern(r"callback|hook|handler|trainer|engine|manager", re.I)


def is_kept(name: str, function: FunctionNode | ast.Module, functions: Functions) -> bool:
    """Whether nothing in `function`, or in what is defined in it, could step what it calls `name`.

    No step of it is written, even where the walk does not come; it is handed to nobody but a schedule, or a
    function in sight that keeps it too; and no gradient is read, which would be another use of a backward.
    """
    return _keeps(name, function, functions, DEEPEST_HANDING)


def _keeps(name: str, function: FunctionNode | ast.Module, functions: Functions, depth: int) -> bool:
    harmless: set[ast.AST] = set()
    uses: list[ast.AST] = []
    for node in nodes_in(function):
        if isinstance(node, ast.Attribute):
            if node.attr in _HARMLESS:
                harmless.add(node.value)
            elif node.attr == "grad":
                return False
        elif isinstance(node, ast.Call):
            harmless.update(_given_safely(node, name, functions, depth))
        elif isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
            uses.append(node)
        elif isinstance(node, ast.Name) and node.id in ("locals", "globals", "vars"):
            return False
    return all(use in harmless for use in uses)


def _given_safely(call: ast.Call, name: str, functions: Functions, depth: int) -> list[ast.expr]:
    """The arguments of a call that it cannot step: those of a schedule, and of a function that keeps them."""
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    if _builds_schedule(last_name(call.func)) or _LOOKS_ON.match(last_name(call.func)):
        return given
    mine = [value for value in given if last_name(value) == name]
    called = functions.get(last_name(call.func), ()) if mine and depth else ()
    if not called or any(isinstance(value, ast.Starred) for value in call.args):
        return []
    return [
        value
        for value in mine
        if all(
            (known := _received(call, function).get(value)) and _keeps(known, function, functions, depth - 1)
            for function in called
        )
    ]


def _received(call: ast.Call, function: FunctionNode) -> dict[ast.expr, str]:
    """By what names `function` knows the arguments of a call."""
    names = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
    if isinstance(call.func, ast.Attribute) and names[:1] in (["self"], ["cls"]):
        names = names[1:]
    every = {*names, *(argument.arg for argument in function.args.kwonlyargs)}
    found = dict(zip(call.args, names, strict=False))
    found.update({k.value: k.arg for k in call.keywords if k.arg is not None and k.arg in every})
    return found


def keeps_to_itself(name: str, owner: ast.ClassDef, tree: ast.Module, functions: Functions) -> bool:
    """Whether nothing in the file could step what the class `owner` calls `self.name`."""
    harmless: set[ast.AST] = set()
    uses: list[ast.AST] = []
    for node in nodes_in(tree):
        if isinstance(node, ast.Attribute):
            if node.attr in _HARMLESS:
                harmless.add(node.value)
            elif node.attr == "grad" or node.attr == "__dict__":
                return False
            if node.attr == name and isinstance(node.ctx, ast.Load) and not _of_torch(node):
                uses.append(node)
        elif isinstance(node, ast.Call):
            if last_name(node.func) in ("getattr", "setattr", "vars") and _about_itself(node):
                return False
            harmless.update(_given_safely(node, name, functions, DEEPEST_HANDING))
        elif isinstance(node, ast.ClassDef) and owner.name in map(last_name, node.bases):
            return False  # which may do with it what it likes
    return all(use in harmless for use in uses)


def _of_torch(node: ast.Attribute) -> bool:
    """`torch.optim.lr_scheduler`, whatever else is called so."""
    return node.attr == "lr_scheduler" and last_name(node.value) in ("optim", "torch")


def _about_itself(call: ast.Call) -> bool:
    return bool(call.args) and last_name(call.args[0]) == "self"


def _builds_schedule(name: str) -> bool:
    """And not what advances one: `LRSchedulerCallback(schedule)`."""
    return name.endswith("LR") or bool(words.SCHEDULE_NAME.search(name) and not _ADVANCES.search(name))


def steps_written(tree: ast.Module) -> tuple[frozenset[str], frozenset[str]]:
    """What has a `.step` somewhere in the file, and what has one that is not called there but handed on; by
    the last part of its name."""
    nodes = nodes_in(tree)
    called = {node.func for node in nodes if isinstance(node, ast.Call)}
    steps = [node for node in nodes if isinstance(node, ast.Attribute) and node.attr == "step"]
    handed_on = frozenset(last_name(node.value) for node in steps if node not in called)
    return frozenset(last_name(node.value) for node in steps), handed_on
