"""Functions that are handed to an engine of Ignite, which calls them for every batch."""

from __future__ import annotations

import ast

from gradclinic.static import words
from gradclinic.static.syntax import imports_ignite, last_name, names_in
from gradclinic.static.values import FunctionNode, Num, Unknown

_ACTS = frozenset({"zero_grad", "step", "unscale_"})


def handed_to_engines(tree: ast.Module) -> frozenset[str]:
    """The names of the functions in `Engine(update)`, where that class is Ignite's."""
    if not any(map(imports_ignite, tree.body)):
        return frozenset()
    return frozenset(
        call.args[0].id
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and last_name(call.func) == "Engine"
        if call.args and isinstance(call.args[0], ast.Name)
    )


def has_acting_handlers(outer: FunctionNode, update: FunctionNode) -> bool:
    """Whether what stands around `update` may clear, step or clip when the engine fires its events."""
    within = set(ast.walk(update))
    steps = [part for part in within if isinstance(part, ast.Attribute) and part.attr == "step"]
    stepped = {last_name(step.value) for step in steps}
    for part in ast.walk(outer):
        if part in within:
            continue
        if isinstance(part, ast.Attribute) and (part.attr in _ACTS or part.attr in words.CLIPS):
            return True
        attaches = isinstance(part, ast.Call) and last_name(part.func) == "add_event_handler"
        if attaches and not stepped.isdisjoint(names_in(part)):
            return True
    return False


def engine_at(index: int) -> Unknown:
    """The engine that a function is given with the batch of this index: it counts from one."""
    iteration = Num(index + 1, invented=True, units=frozenset({"index"}))
    state = Unknown("engine.state", {"iteration": iteration})
    return Unknown("engine", {"state": state})
