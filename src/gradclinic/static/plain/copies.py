"""Weights that are kept for later without being copied: a state, an average, a second model."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from gradclinic.facts.averages import LiveCopy
from gradclinic.static import words
from gradclinic.static.plain.scopes import Scope, bound_by, scopes
from gradclinic.static.plain.twins import twins
from gradclinic.static.syntax import last_name, names_in, nodes_in

_TRAINS = frozenset({"backward", "step"})
_HANDS_ON = frozenset({"copy", "dict", "OrderedDict"})
"""Calls that make a new dictionary of the same tensors."""


def may_tell(text: str) -> bool:
    mixed = "zip(" in text and text.count(".parameters(") > 1
    shadowed = "named_parameters(" in text and (".data" in text or "detach" in text)
    kept = mixed or shadowed or "load_state_dict(" in text or re.search(r"best\w* ?=|best\w*,", text)
    return bool(kept) and words.called("backward", text)


def read(tree: ast.Module, text: str, path: str) -> Iterator[LiveCopy]:
    trainers = _Trainers(tree)
    kept = [(scope, *one) for scope in scopes(tree) for one in _kept(scope)]
    for scope, name, of, node in kept:
        used = _used(scope, name, of, node, trainers) or _loaded_by_others(scope, name, of, node, tree)
        if used is not None:
            yield LiveCopy(name, of, scope.at(node, path), scope.at(used, path))
    yield from twins(tree, text, path)


class _Trainers:
    """The functions of a file that train something, each asked when it is called somewhere."""

    def __init__(self, tree: ast.Module) -> None:
        self._named: dict[str, list[Scope]] = {}
        self._known: dict[str, bool] = {}
        for scope in scopes(tree):
            self._named.setdefault(scope.qualname.rpartition(".")[2], []).append(scope)

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str) or name not in self._named:
            return False
        if name not in self._known:
            self._known[name] = any(_TRAINS & set(names_in(scope.node)) for scope in self._named[name])
        return self._known[name]


def _kept(scope: Scope) -> Iterator[tuple[str, str, ast.Assign]]:
    """`best = model.state_dict()`, `best_model = model`: the name, of what, and where."""
    for node in scope.of(ast.Assign):
        if len(node.targets) != 1:
            continue
        for target, value in _pairs(node.targets[0], node.value):
            if not isinstance(target, (ast.Name, ast.Attribute)):
                continue
            state = _state_of(value)
            if state is not None:
                yield ast.unparse(target), ast.unparse(state), node
            elif isinstance(value, (ast.Name, ast.Attribute)) and words.MODEL_NAME.search(last_name(value)):
                yield ast.unparse(target), ast.unparse(value), node


def _pairs(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        return list(zip(target.elts, value.elts, strict=False))
    return [(target, value)]


def _state_of(value: ast.expr) -> ast.expr | None:
    """The model whose state this is, and no copy of it."""
    if not isinstance(value, ast.Call):
        return None
    if isinstance(value.func, ast.Attribute):
        if value.func.attr == "state_dict" and not value.args:
            # What a call gives may be a copy: `deepcopy(model)`, or the model on another device.
            called = any(isinstance(part, ast.Call) for part in nodes_in(value.func.value))
            return None if called else value.func.value
        if value.func.attr == "copy" and not value.args:
            return _state_of(value.func.value)
    if last_name(value.func) in _HANDS_ON and len(value.args) == 1 and not value.keywords:
        return _state_of(value.args[0])
    return None


def _used(scope: Scope, name: str, of: str, node: ast.Assign, trainers: _Trainers) -> ast.AST | None:
    """Where what was kept is wanted back, after the model has been trained on."""
    assigns = [other for other in scope.nodes if _binds(other, of)]
    around = [loop for loop in _loops(scope) if _within(node, loop) and _trains(loop, of, trainers)]
    if around and _when_better(scope, node):
        loop = around[0]
        if any(_within(other, loop) for other in assigns):
            return None  # a new model in every round
        anew = [other for other in scope.nodes if _binds(other, name) and not _within(other, loop)]
        first = min((_line(other) for other in anew if _line(other) > _line(loop)), default=None)
        after = [use for use in _loads(scope, name) if _line(use) > (loop.end_lineno or 0)]
        after = [use for use in after if first is None or _line(use) < first]
        return after[0] if after and not _made_otherwise(scope, name, loop) else None
    if _state_of(node.value) is None or _made_otherwise(scope, name, None):
        return None
    for use in _loaded_back(scope, name, of):
        again = [loop for loop in _loops(scope) if _within(use, loop) and not _within(node, loop)]
        between = (_line(node), max([_line(use), *(loop.end_lineno or 0 for loop in again)]))
        if _line(use) < _line(node) or any(between[0] < _line(other) < between[1] for other in assigns):
            continue
        if any(_trained(part, of, trainers) for part in scope.nodes if between[0] < _line(part) < between[1]):
            return use
    return None


def _loaded_by_others(scope: Scope, name: str, of: str, node: ast.Assign, tree: ast.Module) -> ast.AST | None:
    """`self.best = model.state_dict()` where a score is better, which another method loads back."""
    if not name.startswith("self.") or _state_of(node.value) is None or not _when_better(scope, node):
        return None
    owner = scope.qualname.rpartition(".")[0]
    others = [other for other in scopes(tree) if other.qualname.rpartition(".")[0] == owner]
    if any(_made_otherwise(other, name, None) for other in others):
        return None
    loads = [
        use
        for other in scopes(tree)
        for use in other.calls()
        if last_name(use.func) == "load_state_dict" and use.args
        if isinstance(use.args[0], ast.Attribute) and use.args[0].attr == name.rpartition(".")[2]
    ]
    return loads[0] if loads else None


def _line(node: ast.AST) -> int:
    return getattr(node, "lineno", 0)


def _within(node: ast.AST, outer: ast.AST) -> bool:
    return _line(outer) <= _line(node) <= (getattr(outer, "end_lineno", 0) or 0)


def _loops(scope: Scope) -> list[ast.For | ast.While]:
    return sorted([*scope.of(ast.For), *scope.of(ast.While)], key=_line)


def _trains(loop: ast.For | ast.While, of: str, trainers: _Trainers) -> bool:
    return any(_trained(part, of, trainers) for part in nodes_in(loop))


def _trained(part: ast.AST, of: str, trainers: _Trainers) -> bool:
    """`loss.backward()`, or a function of the file that trains and is given the model."""
    if not isinstance(part, ast.Call):
        return False
    called = last_name(part.func)
    if called == "backward":
        return True
    given = [*part.args, *(keyword.value for keyword in part.keywords)]
    return called in trainers and of in {ast.unparse(value) for value in given}


def _when_better(scope: Scope, node: ast.Assign) -> bool:
    """`if score > best: best = score; kept = ...`: what is compared is what is remembered beside it."""
    for test in scope.of(ast.If):
        if not _within(node, test):
            continue
        if not any(node in nodes_in(part) for part in test.body if _within(node, part)):
            continue
        if not (isinstance(test.test, ast.Compare) and isinstance(test.test.ops[0], _ORDERS)):
            continue
        compared = {ast.unparse(side) for side in (test.test.left, *test.test.comparators)}
        if any(compared & bound_by(part) for branch in test.body for part in nodes_in(branch)):
            return True
    return False


_ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def _binds(node: ast.AST, name: str) -> bool:
    """Whether the name means something else from there on, or what it is an attribute of."""
    parts = name.split(".")
    return not bound_by(node).isdisjoint(".".join(parts[:end]) for end in range(1, len(parts) + 1))


def _made_otherwise(scope: Scope, name: str, within: ast.AST | None) -> bool:
    """Whether it is also given something that is no live state, a copy say; None is a place kept free."""
    for node in scope.nodes:
        if isinstance(node, (ast.AugAssign, ast.AnnAssign)) and ast.unparse(node.target) == name:
            return True
        if isinstance(node, ast.Assign) and any(_is_item(target, name) for target in node.targets):
            return True
        if isinstance(node, ast.Call) and ast.unparse(node.func) == f"{name}.update":
            return True
        if not isinstance(node, ast.Assign) or (within is not None and not _within(node, within)):
            continue
        for target, value in [pair for one in node.targets for pair in _pairs(one, node.value)]:
            if ast.unparse(target) == name and not _is_plain(value):
                return True
    return False


def _is_item(target: ast.expr, name: str) -> bool:
    return isinstance(target, ast.Subscript) and ast.unparse(target.value) == name


def _is_plain(value: ast.expr) -> bool:
    return _state_of(value) is not None or isinstance(value, (ast.Constant, ast.Name, ast.Attribute))


def _loads(scope: Scope, name: str) -> list[ast.AST]:
    """Expressions that mention it; names stand in what is around them."""
    return [
        node
        for node in scope.nodes
        if isinstance(node, (ast.Return, ast.Call)) and any(_is_it(part, name) for part in nodes_in(node))
    ]


def _is_it(part: ast.AST, name: str) -> bool:
    if isinstance(part, ast.Name):
        return part.id == name
    return isinstance(part, ast.Attribute) and name.endswith(f".{part.attr}") and ast.unparse(part) == name


def _loaded_back(scope: Scope, name: str, of: str) -> list[ast.Call]:
    return [
        call
        for call in scope.calls()
        if isinstance(call.func, ast.Attribute)
        and call.func.attr == "load_state_dict"
        and ast.unparse(call.func.value) == of
        and call.args
        and ast.unparse(call.args[0]) == name
    ]
