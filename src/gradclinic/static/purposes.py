"""What a pass that trains nothing is for: to be looked at, or for the training that comes after it.

Losses that weight, order or select the samples of the next epoch are measured as the training sees them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from gradclinic.static import words
from gradclinic.static.survey import Survey
from gradclinic.static.syntax import children, last_name, names_in, nodes_in, statements_in
from gradclinic.static.values import FunctionNode

_ADDS = frozenset({"append", "extend", "update", "add", "put", "insert", "scatter_", "copy_", "index_copy_"})
_LOOPS = (ast.For, ast.AsyncFor)
MOST_ROUNDS = 8


def serves_training(sweep: ast.AST, forward: ast.AST, scopes: Sequence[ast.AST], survey: Survey) -> bool:
    """Whether what `forward` gives within `sweep` is used by a loop that trains.

    `scopes` are the functions around it, innermost last, each called by the one before.
    """
    inside = statements_in(sweep)
    held = {name for node in inside if _has(node, forward) for name in _given(node)}
    held = _derived(held, inside)
    for position in range(len(scopes) - 1, -1, -1):
        scope = scopes[position]
        within = statements_in(scope)
        held = _derived(held, within)
        if any(_uses(loop, held) for loop in within if isinstance(loop, _LOOPS) and survey.owns_beat(loop)):
            return True
        if not isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef)) or not position:
            return False
        if not _gives_back(scope, held):
            held = {name for name in held if name.startswith(".")}
        else:
            held = set(_named_by_callers(scope, scopes[position - 1]))
    return False


def _has(statement: ast.stmt, forward: ast.AST) -> bool:
    """In an expression of its own, not in a statement inside it."""
    expressions = [part for part in children(statement) if isinstance(part, ast.expr)]
    return any(forward is part for one in expressions for part in nodes_in(one))


def _given(node: ast.stmt) -> Iterator[str]:
    """What a statement gives a value to, or adds one to; attributes with a dot."""
    if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            yield from _named(target)
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        function = node.value.func
        if isinstance(function, ast.Attribute) and function.attr in _ADDS:
            yield from _named(function.value)


def _named(target: ast.expr) -> Iterator[str]:
    if isinstance(target, (ast.Tuple, ast.List)):
        for part in target.elts:
            yield from _named(part)
    elif isinstance(target, (ast.Subscript, ast.Starred)):
        yield from _named(target.value)
    elif isinstance(target, ast.Attribute):
        yield f".{target.attr}"
    elif isinstance(target, ast.Name):
        yield target.id


def _mentioned(node: ast.AST) -> set[str]:
    """All names and attributes but those that are merely shown or written down."""
    found: set[str] = set()
    waiting: list[ast.AST] = [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part, ast.Name):
            found.add(part.id)
        elif isinstance(part, ast.Attribute):
            found.add(f".{part.attr}")
        if not (isinstance(part, ast.Call) and words.harmless(last_name(part.func))):
            waiting += children(part)
    return found


def _derived(held: set[str], statements: list[ast.stmt]) -> set[str]:
    """With what is computed from it."""
    held = set(held)
    for _ in range(MOST_ROUNDS):
        before = len(held)
        for node in statements:
            value = getattr(node, "value", None) if not isinstance(node, ast.Return) else None
            if isinstance(value, ast.expr) and _computes(value) & held:
                held.update(_given(node))
        if len(held) == before:
            break
    return held


def _computes(value: ast.expr) -> set[str]:
    """What goes into a value; of `losses.append(x)`, what is added."""
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _ADDS:
        given = [*value.args, *(keyword.value for keyword in value.keywords)]
        return {name for part in given for name in _all_names(part)}
    return _all_names(value)


def _all_names(value: ast.AST) -> set[str]:
    parts = nodes_in(value)
    plain = {part.id for part in parts if isinstance(part, ast.Name)}
    return plain | {f".{part.attr}" for part in parts if isinstance(part, ast.Attribute)}


def _uses(loop: ast.For | ast.AsyncFor, held: set[str]) -> bool:
    """Whether a loop over batches goes over what was made of it, or computes with it; what the loop gives a
    value to itself is another thing by the same name."""
    if _all_names(loop.iter) & held:
        return True
    own = {name for node in statements_in(loop) for name in _given(node)} | set(names_in(loop.target))
    return any(_mentioned(node) & held - own for node in loop.body)


def _gives_back(function: FunctionNode, held: set[str]) -> bool:
    returned = [part.value for part in nodes_in(function) if isinstance(part, (ast.Return, ast.Yield))]
    return any(value is not None and _all_names(value) & held for value in returned)


def _named_by_callers(function: FunctionNode, caller: ast.AST) -> Iterator[str]:
    for node in statements_in(caller):
        value = getattr(node, "value", None)
        if isinstance(value, ast.expr) and function.name in names_in(value):
            yield from _given(node)
