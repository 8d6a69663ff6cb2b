"""What source says of an optimizer or a schedule where the walk does not come: who else may step it."""

from __future__ import annotations

import ast

from gradclinic.static import words
from gradclinic.static.syntax import last_name, nodes_in
from gradclinic.static.values import FunctionNode

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


def is_kept(name: str, function: FunctionNode) -> bool:
    """Whether nothing in `function`, or in what is defined in it, could step what it calls `name`.

    No step of it is written, even where the walk does not come; it is handed to nobody but a schedule; and no
    gradient is read, which would be another use of a backward than to step.
    """
    harmless: set[ast.AST] = set()
    uses: list[ast.AST] = []
    for node in nodes_in(function):
        if isinstance(node, ast.Attribute):
            if node.attr in _HARMLESS:
                harmless.add(node.value)
            elif node.attr == "grad":
                return False
        elif isinstance(node, ast.Call) and _builds_schedule(last_name(node.func)):
            harmless.update(node.args, (keyword.value for keyword in node.keywords))
        elif isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
            uses.append(node)
        elif isinstance(node, ast.Name) and node.id in ("locals", "globals", "vars"):
            return False
    return all(use in harmless for use in uses)


def _builds_schedule(name: str) -> bool:
    return name.endswith("LR") or bool(words.SCHEDULE_NAME.search(name))


def steps_written(tree: ast.Module) -> tuple[frozenset[str], frozenset[str]]:
    """What has a `.step` somewhere in the file, and what has one that is not called there but handed on; by
    the last part of its name."""
    nodes = nodes_in(tree)
    called = {node.func for node in nodes if isinstance(node, ast.Call)}
    steps = [node for node in nodes if isinstance(node, ast.Attribute) and node.attr == "step"]
    handed_on = frozenset(last_name(node.value) for node in steps if node not in called)
    return frozenset(last_name(node.value) for node in steps), handed_on
