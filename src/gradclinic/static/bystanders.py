"""Functions of other files of the project that train nothing: nothing they get to says so."""

from __future__ import annotations

import ast
from functools import lru_cache

from gradclinic.static.imports import bindings
from gradclinic.static.project_files import file_of, parsed, version_of
from gradclinic.static.syntax import names_in, nodes_in
from gradclinic.static.values import Lib
from gradclinic.static.words import Pattern

MOST_READ = 40
"""Functions and classes, in search of a word."""
_TRAINS = Pattern(
    r"backward|backprop|zero_grad|^(?:grad|step|fit|learn|closure)$|_step_?$|^step_|optimi|clip_grad|unscale|scaler|"
    r"minimi|autograd|hook|[tT]rainer|(?:^|_)(?:update|train)_"
)
"""What touches a gradient or a weight, and what may well do."""


def leaves_alone(name: str, path: str) -> bool:
    """Whether the function that the file at `path` knows as `package.module.name` trains nothing."""
    module, _, function = name.rpartition(".")
    # Installed packages are no project of whoever lints them: none of their files is followed.
    followed = module.strip(".") and "site-packages" not in path
    file = file_of(module, path) if followed else None
    return file is not None and _is_quiet(file, version_of(file)[0], function)


@lru_cache(maxsize=1024)
def _is_quiet(file: str, changed: int, function: str) -> bool:
    waiting = [(file, function)]
    for number, (where, name) in enumerate(waiting):  # which grows meanwhile
        tree = parsed(where, *version_of(where))
        if tree is None or number == MOST_READ:
            return False
        defined = {part.name: part for part in tree.body if isinstance(part, (ast.FunctionDef, ast.ClassDef))}
        body = defined.get(name)
        known = _bound(tree.body) | _bound(nodes_in(body) if body is not None else ())
        if body is None and name not in known:
            return False
        names = set(names_in(body)) if body is not None else {name}
        if body is not None and any(map(_TRAINS.search, names)):
            return False
        reached = [(where, other) for other in names & defined.keys()]
        for other in names & known.keys() - defined.keys():
            module, _, taken = known[other].rpartition(".")
            if file_of(known[other], where) is not None:
                return False  # a module of the project: which of its functions are meant is not asked
            source = file_of(module, where) if module.strip(".") else None
            reached += [(source, taken)] if source is not None else []
        waiting += [part for part in reached if part not in waiting]
    return True


def _bound(body: list[ast.stmt] | list[ast.AST] | tuple[()]) -> dict[str, str]:
    """What is imported there, by the names it is given."""
    found: dict[str, str] = {}
    for part in body:
        if isinstance(part, (ast.Import, ast.ImportFrom)):
            bound = bindings(part).items()
            found.update({name: value.name for name, value in bound if isinstance(value, Lib)})
    return found
