"""Functions of other files of the project that run a model they are given: `get_loss(model, x, y)`."""

from __future__ import annotations

import ast
from functools import lru_cache

from gradclinic.static.bystanders import leaves_alone
from gradclinic.static.forwards import forward
from gradclinic.static.own_methods import SWITCHES
from gradclinic.static.project_files import file_of, parsed, version_of
from gradclinic.static.syntax import names_in, nodes_in
from gradclinic.static.values import Model
from gradclinic.static.walk import Arguments, Walk

_ASKED = frozenset({"forward", "parameters", "named_parameters"})
"""Methods of a model that leave it as it is."""


def run_given(walk: Walk, name: str, args: Arguments, node: ast.Call) -> Model | None:
    """The one model that the function known as `name` plainly runs and leaves as it was. It goes forward
    where the function is called: once, however often it does so there."""
    if args.partial or not any(isinstance(value, Model) for value in args.all()):
        return None
    path = walk.frame.module.path or walk.path
    given = [args.get(position, parameter) for position, parameter in _run_by(name, path)]
    models = [value for value in given if isinstance(value, Model)]
    if len(models) != 1 or not leaves_alone(name, path):
        return None
    forward(walk, models[0], args, node)
    return models[0]


def _run_by(name: str, path: str) -> tuple[tuple[int, str], ...]:
    module, _, function = name.rpartition(".")
    followed = module.strip(".") and "site-packages" not in path
    file = file_of(module, path) if followed else None
    return _parameters_run(file, *version_of(file), function) if file is not None else ()


@lru_cache(maxsize=1024)
def _parameters_run(file: str, changed: int, size: int, function: str) -> tuple[tuple[int, str], ...]:
    """Those that it calls as models, by position and name; none where gradients or modes may be switched, or
    where others are given the model."""
    tree = parsed(file, changed, size)
    functions = [part for part in tree.body if isinstance(part, ast.FunctionDef)] if tree else []
    defined = next((part for part in functions if part.name == function), None)
    if defined is None or defined.decorator_list or not SWITCHES.isdisjoint(names_in(defined)):
        return ()
    nodes = nodes_in(defined)
    if any(isinstance(node, (ast.With, ast.AsyncWith, ast.FunctionDef, ast.Lambda)) for node in nodes[1:]):
        return ()
    spec = defined.args
    names = [part.arg for part in (*spec.posonlyargs, *spec.args)]
    return tuple((number, name) for number, name in enumerate(names) if _is_run(name, nodes))


def _is_run(name: str, nodes: list[ast.AST]) -> bool:
    """Whether it is called itself, and nothing else is done with it that might matter."""
    mentioned = [node for node in nodes if isinstance(node, ast.Name) and node.id == name]
    called = {node.func for node in nodes if isinstance(node, ast.Call)}
    asked = {
        node.value: node
        for node in nodes
        if isinstance(node, ast.Attribute) and node.attr in _ASKED and node in called
    }
    runs = [one for one in mentioned if one in called or (one in asked and asked[one].attr == "forward")]
    return bool(runs) and all(part in called or part in asked for part in mentioned)
