"""Gradient descent written out: `w -= lr * w.grad`, in loops that clear no gradient."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from gradclinic.facts.descents import DescentByHand
from gradclinic.frozen import frozen
from gradclinic.static import words
from gradclinic.static.plain.scopes import bound_by, scopes
from gradclinic.static.syntax import children, last_name, names_in, nodes_in
from gradclinic.static.values import FunctionNode

_LEAVES = (ast.Break, ast.Return, ast.Raise)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_GRADIENT = re.compile(r"\.grad\b")
_DESCENDS = re.compile(r"[-+]=|\.data\s*=|(?:sub|add|copy)_\(")
_FAR = 200
"""Characters that an update may have before the gradient that it uses."""
_IN_PLACE = frozenset({"sub_", "add_", "copy_"})
_CLEARS = frozenset({"step", "setattr", "grad_", "fill_"})
"""An optimizer beside it is the business of those who follow optimizers."""
_SOUNDS_CLEARING = re.compile(r"zero|clear|reset|clean", re.I)
_MERELY_COMPUTE = frozenset({"torch", "numpy", "math", "matplotlib", "tqdm", "wandb", "time"})
_OF_TENSORS_AND_MODULES = words.names(
    "parameters named_parameters forward train eval to cuda cpu sub_ add_ copy_ item detach numpy tolist "
    "size view reshape flatten abs sum mean norm pow square t mm matmul dot clone"
)


@frozen
class _File:
    functions: dict[str, list[FunctionNode]]
    known: frozenset[str]
    """What can be called without anything unseen happening, by the first part of its name."""


def may_tell(text: str) -> bool:
    if ".grad" not in text or not words.called("backward", text):
        return False
    places = (found.start() for found in _GRADIENT.finditer(text))
    return any(_DESCENDS.search(text, max(0, place - _FAR), place) for place in places)


def read(tree: ast.Module, text: str, path: str) -> Iterator[DescentByHand]:
    if words.TEST_FILE.search(path):
        return  # whose loops go a few times
    file = None
    for scope in scopes(tree):
        for loop in scope.nodes:
            if isinstance(loop, _LOOPS) and (updates := list(_updates(loop))):
                file = file or _seen_in(tree)
                backward = _uncleared(loop, [name for _, name in updates], file)
                if backward is not None:
                    names = tuple(dict.fromkeys(name for _, name in updates))
                    yield DescentByHand(names, scope.at(backward, path), scope.at(updates[0][0], path))


def _updates(loop: ast.stmt) -> Iterator[tuple[ast.AST, str]]:
    """What each iteration updates by its gradient: by itself, or in a loop over the parameters."""
    if any(isinstance(part, _LEAVES) for part in _straight_in(loop)):
        return  # after the first batch, or at the end of a window
    for part in _straight_in(loop):
        if isinstance(part, ast.For) and isinstance(part.target, ast.Name):
            for inner in nodes_in(part):
                if _updated(inner) == part.target.id:
                    yield inner, ast.unparse(part.iter)
        elif (name := _updated(part)) is not None:
            yield part, name


def _straight_in(loop: ast.stmt) -> Iterator[ast.AST]:
    """What one iteration surely does, without the loops in it, or does where there is a gradient."""
    waiting = list(children(loop))
    for part in waiting:  # which grows meanwhile
        yield part
        if isinstance(part, ast.If) and "grad" not in names_in(part.test):
            waiting += [leaving for leaving in nodes_in(part) if isinstance(leaving, _LEAVES)]
        elif not isinstance(part, (*_LOOPS, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            waiting += children(part)


def _updated(part: ast.AST) -> str | None:
    """The `w` of `w -= lr * w.grad`, `w.data = w.data - lr * w.grad`, `w.data.add_(-lr * w.grad)`."""
    target: ast.expr
    given: list[ast.expr]
    if isinstance(part, ast.AugAssign) and isinstance(part.op, (ast.Add, ast.Sub)):
        target, given = part.target, [part.value]
    elif isinstance(part, ast.Assign) and last_name(part.targets[0]) == "data":
        target, given = part.targets[0], [part.value]
    elif isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in _IN_PLACE:
        target, given = part.func.value, [*part.args, *(keyword.value for keyword in part.keywords)]
    else:
        return None
    while isinstance(target, ast.Attribute) and target.attr == "data":
        target = target.value
    if not isinstance(target, (ast.Name, ast.Attribute)):
        return None
    name = ast.unparse(target)
    if isinstance(part, ast.Assign) and not re.search(
        rf"{re.escape(name)}(?!\.grad)\b", ast.unparse(part.value)
    ):
        return None  # made of something else, and by the sum of all gradients maybe
    gradients = [
        node.value
        for value in given
        for node in nodes_in(value)
        if isinstance(node, ast.Attribute) and node.attr == "grad"
    ]
    return name if any(ast.unparse(owner) == name for owner in gradients) else None


def _seen_in(tree: ast.Module) -> _File:
    functions: dict[str, list[FunctionNode]] = {}
    known = set(words.PYTHONS_OWN)
    for node in nodes_in(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            functions.setdefault(node.name, []).append(node)
        elif isinstance(node, ast.ClassDef):
            known.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            for name in node.names:
                origin = node.module if isinstance(node, ast.ImportFrom) else name.name
                if (origin or "").partition(".")[0] in _MERELY_COMPUTE:
                    known.add(name.asname or name.name.partition(".")[0])
    return _File(functions, frozenset(known | functions.keys()))


def _uncleared(loop: ast.stmt, names: list[str], file: _File) -> ast.Call | None:
    """The backward of a loop that clears no gradient, as far as all of it is in sight."""
    parts = nodes_in(loop)
    beyond = _called(parts, file)
    backward = [part for part in parts if isinstance(part, ast.Call) and last_name(part.func) == "backward"]
    if not backward or any(map(_may_clear, parts)) or any(map(_may_clear, beyond)):
        return None
    if any("[" in name.removeprefix("[") for name in names):
        return None  # another one each time, maybe
    owners = {re.split(r"[.(]", name.removeprefix("self."))[0] for name in names} | set(names)
    owners.update(part for name in names if name.startswith("[") for part in re.findall(r"\w+", name))
    made = {name.removeprefix("self.") for part in (*parts, *beyond) for name in bound_by(part)}
    made.update(name for part in beyond if isinstance(part, ast.Global) for name in part.names)
    if not owners.isdisjoint(made | {f"self.{name}" for name in made}):
        return None  # made anew each time, and its gradient with it
    for call in parts:
        if isinstance(call, ast.Call) and not _is_known(call, owners, file):
            return None
    return backward[0]


def _may_clear(part: ast.AST) -> bool:
    if isinstance(part, ast.Attribute):
        if part.attr in ("grad", "_grad"):
            return not isinstance(part.ctx, ast.Load)
        return part.attr in _CLEARS or bool(_SOUNDS_CLEARING.search(part.attr))
    if isinstance(part, (ast.Assign, ast.AugAssign, ast.Delete)):
        targets = [part.target] if isinstance(part, ast.AugAssign) else part.targets
        named_so = isinstance(part, ast.Assign) and last_name(part.value) == "grad"  # `g = w.grad`
        return named_so or any("grad" in names_in(target) for target in targets)
    if not isinstance(part, ast.Call):
        return False
    called = last_name(part.func)
    if called in _CLEARS or _SOUNDS_CLEARING.search(called):
        return True
    # `w.grad.mul_(0)`, `constant_(w.grad, 0)`, and no `w.sub_(rate * w.grad)`.
    touched = [part.func, *_given(part)] if _updated(part) is None else []
    return called.endswith("_") and any("grad" in names_in(given) for given in touched)


def _called(parts: list[ast.AST], file: _File) -> list[ast.AST]:
    """All that functions of the file do that the loop names, and those that they name."""
    found: list[ast.AST] = []
    asked: set[str] = set()
    waiting = parts
    while waiting:
        names = {part.id if isinstance(part, ast.Name) else getattr(part, "attr", "") for part in waiting}
        fresh = (names & file.functions.keys()) - asked
        asked |= fresh
        waiting = [part for name in fresh for node in file.functions[name] for part in nodes_in(node)]
        found += waiting
    return found


def _is_known(call: ast.Call, owners: set[str], file: _File) -> bool:
    """Whether it is plain what the call does to those that are updated."""
    names = names_in(call.func)
    if not names or names[-1] in file.known or names[0] in file.functions:
        return True
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    if isinstance(owner, (ast.Name, ast.Attribute)) and not owners.isdisjoint(
        (ast.unparse(owner), names[-1])
    ):
        return last_name(call.func) in _OF_TENSORS_AND_MODULES
    runs = isinstance(call.func, ast.Name) and call.func.id in owners
    return runs or not any(owners & set(names_in(given)) for given in _given(call))


def _given(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(keyword.value for keyword in call.keywords)]
