"""A file executed on abstract tensors by itself, or by those who call its functions."""

from __future__ import annotations

import ast
import contextlib
import re
from collections.abc import Iterator

from gradclinic.static.flow.expressions import evaluate
from gradclinic.static.flow.machine import Log, Machine, TooLong
from gradclinic.static.flow.out_of_sight import RECURRENT
from gradclinic.static.flow.running import run, run_built
from gradclinic.static.flow.statements import execute
from gradclinic.static.project_files import parsed, text_of, version_of
from gradclinic.static.values import Frame

PATIENCE = 4
"""Times as many steps may a file take that keeps a graph: what becomes of it must be seen to the end."""
_KEEPS_STATE = re.compile(
    r"\w_hidden\(|\.(c?hidden|hx)\b|stateful|\.\w*(init|reset|clear|detach|repackage)_\w*(state|memory|history)s?\(",
    re.I,
)
"""What is done to a model that carries something from one call to the next."""
_COMMENT = re.compile(r"#.*")
_OF_MODULE = re.compile(
    r"\.(?:(?:named_)?parameters|zero_grad|train|eval|(?:load_)?state_dict|requires_grad_)\("
)
_WORD_BEFORE = re.compile(r"\w+$")
_LONGEST_NAME = 80


def modules_named(text: str) -> list[str]:
    """What is treated as a module is; some names of optimizers are found as well, which nobody calls."""
    # A pattern that begins with the name would be tried at every letter of the file.
    before = (text[max(0, used.start() - _LONGEST_NAME) : used.start()] for used in _OF_MODULE.finditer(text))
    return [name[0] for name in map(_WORD_BEFORE.search, before) if name]


def remembers(log: Log, text: str) -> bool:
    """Whether a model out of sight may remember: one that sounds like it, or any where the file does."""
    if any(RECURRENT.search(name) for name in log.unseen):
        return True
    unnamed = any("()" not in name for name in log.unseen)
    signs = [_KEEPS_STATE, *([RECURRENT] if unnamed else ())]
    # Remarks are few to take out where there is nothing to be found in the whole.
    return any(sign.search(text) and sign.search(_COMMENT.sub("", text)) for sign in signs)


def executed(machine: Machine, tree: ast.Module, text: str, calls: tuple[str, ...] = ()) -> Log:
    try:
        run(machine, tree, text, calls)
    except (TooLong, RecursionError):
        machine.log.finished = False
    return machine.log


def run_by_callers(tree: ast.Module, text: str, path: str, callers: list[str], steps: int) -> Iterator[Log]:
    """What happens to the file when it is they who call its functions."""
    defined = tuple(node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef)))
    for caller in callers:
        script = parsed(caller, *version_of(caller))
        if script is None:
            continue
        machine = Machine(path, caller, Frame(""), execute, evaluate, caller, reads_all=True)
        machine.steps = steps
        machine.models = frozenset(modules_named(text) + modules_named(text_of(caller)))
        log = executed(machine, script, text_of(caller), defined)
        with contextlib.suppress(TooLong, RecursionError):
            run_built(machine, tree, text)
        log.remembers = bool(log.uses) and bool(log.marks) and remembers(log, text + text_of(caller))
        yield log
