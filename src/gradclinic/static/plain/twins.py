"""Models that one line mixes into another, though both are the same model or share its memory."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from operator import itemgetter
from typing import TypeAlias

from gradclinic.facts import Location
from gradclinic.facts.averages import LiveCopy
from gradclinic.frozen import frozen
from gradclinic.static.plain.scopes import Scope, bound_by, scopes
from gradclinic.static.syntax import last_name, names_in, nodes_in

_MOVES = frozenset({"to", "cuda", "cpu", "float", "double", "half", "train", "eval"})
_IN_PLACE = frozenset({"mul_", "add_", "lerp_", "copy_"})
_LOADS = "load_state_dict"
_Mixers: TypeAlias = dict[str, list[list[int]]]
"""Functions that mix two models they are given, with which of their arguments those are."""


@frozen
class _Mixing:
    """`one` is made to follow `other` here, so the program takes them for two."""

    names: frozenset[str]
    where: Location
    scope: Scope


def twins(tree: ast.Module, text: str, path: str) -> Iterator[LiveCopy]:
    """`target = model`, and a line that copies the weights of one into the other."""
    every = scopes(tree)
    zips = "zip(" in text
    mixers = _mixers(every) if zips else {}
    mixed = [found for scope in every for found in _mixings(scope, mixers, path)]
    for scope in every if mixed else ():
        for node in scope.of(ast.Assign):
            if len(node.targets) == 1:
                yield from _same(node, scope, mixed, every, path)
        yield from _of_one(scope, mixed, every, path)
    for scope in every if "named_parameters" in text else ():
        yield from _shadows(scope, every, path)
    for scope in every if zips else ():
        yield from _pointed(scope, tree, path)


def _same(
    node: ast.Assign, scope: Scope, mixed: list[_Mixing], every: tuple[Scope, ...], path: str
) -> Iterator[LiveCopy]:
    target, value = node.targets[0], node.value
    if (
        isinstance(value, ast.Call)
        and ast.unparse(value.func) in ("copy.copy", "copy")
        and len(value.args) == 1
    ):
        value = value.args[0]
    if not all(isinstance(part, (ast.Name, ast.Attribute)) for part in (target, value)):
        return
    names = frozenset({ast.unparse(target), ast.unparse(value)})
    near = [other for other in every if _share(scope, other, names)]
    made = [
        (one, other)
        for one in near
        for other in one.nodes
        if isinstance(other, ast.Assign) and other is not node
    ]
    use = next((found for found in mixed if found.names == names and _share(scope, found.scope, names)), None)
    if use is None or len(names) < 2 or _comes_first(use, node, scope):
        return
    # What the constructor has put there is gone with the first update that does both.
    updates = use.where.function == scope.qualname and not _constructs(scope)
    again = [
        other
        for one, other in made
        if ast.unparse(target) in bound_by(other) and not (updates and _constructs(one))
    ]
    anew = [
        other for _, other in made if ast.unparse(value) in bound_by(other) and other.lineno > node.lineno
    ]
    if not again and not anew:
        yield LiveCopy(ast.unparse(target), ast.unparse(value), scope.at(node, path), use.where)


def _comes_first(use: _Mixing, node: ast.Assign, scope: Scope) -> bool:
    """Whether the weights are given before the two become one: a new layer takes the place of an old one."""
    if use.scope is not scope or not isinstance(node.value, ast.Name):
        return False
    loops = [
        loop for loop in scope.nodes if isinstance(loop, (ast.For, ast.While)) and node in nodes_in(loop)
    ]
    begin = max((loop.lineno for loop in loops), default=0)
    # What was there before this round, or before this call, may be one with the other already.
    return any(
        isinstance(made, ast.Assign)
        and node.value.id in bound_by(made)
        and begin < made.lineno < use.where.line < node.lineno
        for made in scope.nodes
    )


def _constructs(scope: Scope) -> bool:
    return scope.qualname.endswith(".__init__")


def _of_one(scope: Scope, mixed: list[_Mixing], every: tuple[Scope, ...], path: str) -> Iterator[LiveCopy]:
    """`policy = model.to(device)` and `target = model.to(device)`: both are the model, and none a copy."""
    assigns = [node for node in scope.of(ast.Assign) if len(node.targets) == 1]
    for first in assigns:
        moved = _moved(first.value)
        for second in assigns if moved is not None else ():
            names = frozenset({ast.unparse(first.targets[0]), ast.unparse(second.targets[0])})
            use = next((found for found in mixed if found.names == names), None)
            if (
                use is None
                or len(names) < 2
                or second.lineno <= first.lineno
                or _moved(second.value) != moved
            ):
                continue
            near = [other for other in every if _share(scope, other, names)]
            again = [
                node
                for one in near
                for node in one.nodes
                if isinstance(node, ast.Assign) and node is not first and node is not second
                if names & bound_by(node)
                or (moved in bound_by(node) and first.lineno < node.lineno < second.lineno)
            ]
            if not again:
                copy, of = (ast.unparse(node.targets[0]) for node in (second, first))
                yield LiveCopy(copy, of, scope.at(second, path), use.where)


def _moved(value: ast.expr) -> str | None:
    """The model behind `model.to(device)`, which gives back the model itself."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        if value.func.attr not in _MOVES:
            return None
        value = value.func.value
    return ast.unparse(value) if isinstance(value, (ast.Name, ast.Attribute)) else None


def _share(one: Scope, other: Scope, names: frozenset[str]) -> bool:
    """Whether these names mean the same in both: in one function, as attributes of one class, or of the file
    where the other does not use them for something of its own."""
    if one is other:
        return True
    if "" in (one.qualname, other.qualname):
        inner = one if other.qualname == "" else other
        return names.isdisjoint(_own(inner))
    owners = {scope.qualname.rpartition(".")[0] for scope in (one, other)}
    return len(owners) == 1 and "" not in owners and all(name.startswith("self.") for name in names)


def _own(scope: Scope) -> set[str]:
    """The names that a function is given or gives to something."""
    assert isinstance(scope.node, (ast.FunctionDef, ast.AsyncFunctionDef))
    spec = scope.node.args
    given = {argument.arg for argument in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)}
    return given.union(*map(bound_by, scope.of(ast.Assign)))


def _mixings(scope: Scope, mixers: _Mixers, path: str) -> Iterator[_Mixing]:
    found: list[tuple[int, ast.AST, list[str]]] = [
        (loop.lineno, loop, _zipped(loop)) for loop in scope.of(ast.For)
    ]
    for call in scope.calls():
        if mixers or last_name(call.func) == _LOADS:
            found.append((call.lineno, call, _given_state(call) or _given_to_a_mixer(call, mixers)))
    for _, node, names in sorted(found, key=itemgetter(0)):
        if len(names) == 2 and not _tells_apart(scope, node):
            yield _Mixing(frozenset(names), scope.at(node, path), scope)


def _tells_apart(scope: Scope, node: ast.AST) -> bool:
    """`if self.target is not self.net:`, which knows that they may be one."""
    return any(
        any(isinstance(part, (ast.Is, ast.IsNot)) for part in ast.walk(test.test)) and node in nodes_in(test)
        for test in scope.of(ast.If)
    )


def _given_state(call: ast.Call) -> list[str]:
    """`target.load_state_dict(model.state_dict())`."""
    given = call.args[0] if len(call.args) == 1 else None
    if last_name(call.func) != _LOADS or not isinstance(given, ast.Call):
        return []
    owners = [part.func.value for part in (call, given) if isinstance(part.func, ast.Attribute)]
    return [ast.unparse(owner) for owner in owners] if last_name(given.func) == "state_dict" else []


def _zipped(loop: ast.For) -> list[str]:
    """`for slow, live in zip(average.parameters(), model.parameters())` that writes into one of the two."""
    call = loop.iter
    if not (isinstance(call, ast.Call) and last_name(call.func) == "zip" and len(call.args) == 2):
        return []
    if any(last_name(getattr(arg, "func", arg)) != "parameters" for arg in call.args) or not _writes(loop):
        return []
    return [ast.unparse(arg.func.value) for arg in call.args if isinstance(arg, ast.Call)]  # type: ignore[attr-defined]


def _writes(loop: ast.For) -> bool:
    return any(
        (isinstance(part, ast.Attribute) and part.attr == "data" and isinstance(part.ctx, ast.Store))
        or (isinstance(part, ast.Call) and last_name(part.func) in _IN_PLACE)
        for part in nodes_in(loop)
    )


def _mixers(every: tuple[Scope, ...]) -> _Mixers:
    found: _Mixers = {}
    for scope in every:
        function = scope.node
        if isinstance(function, ast.FunctionDef):
            received = [argument.arg for argument in function.args.args if argument.arg != "self"]
            for loop in scope.of(ast.For):
                mixed = _zipped(loop)
                if mixed and all(name in received for name in mixed):
                    found.setdefault(function.name, []).append([received.index(name) for name in mixed])
    return found


def _given_to_a_mixer(call: ast.Call, mixers: _Mixers) -> list[str]:
    """`soft_update(self.net, self.target)`, a function of the file that goes over both."""
    for places in mixers.get(last_name(call.func), ()):
        given = [call.args[place] for place in places if place < len(call.args)]
        if len(given) == len(places) and all(isinstance(arg, (ast.Name, ast.Attribute)) for arg in given):
            return [ast.unparse(arg) for arg in given]
    return []


def _shadows(scope: Scope, every: tuple[Scope, ...], path: str) -> Iterator[LiveCopy]:
    """`shadow = {name: p.data for name, p in model.named_parameters()}`, which is then averaged in place."""
    for node in scope.of(ast.Assign):
        if not isinstance(node.value, ast.DictComp):
            continue
        made, source = node.value.value, node.value.generators[0].iter
        live = isinstance(made, ast.Attribute) and made.attr == "data"
        live = live or (isinstance(made, ast.Call) and last_name(made.func) == "detach")
        if not live or last_name(getattr(source, "func", source)) != "named_parameters":
            continue
        name = ast.unparse(node.targets[0])
        model = source.func.value  # type: ignore[attr-defined]
        near = [other for other in every if _share(scope, other, frozenset({name}))]
        if any(_is_copied(other, ast.unparse(model)) for other in near):
            continue
        for other in near:
            for call in other.calls():
                if last_name(call.func) in _IN_PLACE and _first(call).startswith(f"{name}["):
                    yield LiveCopy(name, ast.unparse(model), scope.at(node, path), other.at(call, path))
                    return


def _is_copied(scope: Scope, name: str) -> bool:
    """`self.average = deepcopy(model)`: weights that are its own."""
    return any(
        isinstance(node, ast.Assign)
        and name in bound_by(node)
        and any("copy" in part for part in names_in(node.value))
        for node in scope.nodes
    )


def _first(call: ast.Call) -> str:
    """What a chain of methods begins with."""
    value: ast.expr = call
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        value = value.func.value
    return ast.unparse(value)


def _pointed(scope: Scope, tree: ast.Module, path: str) -> Iterator[LiveCopy]:
    """`kept.data = new.data` over two models, the second of which an optimizer of the file holds alone."""
    for loop in scope.of(ast.For):
        if not isinstance(loop.target, ast.Tuple):
            continue
        models, held = _zipped(loop), [ast.unparse(part) for part in loop.target.elts]
        for part in nodes_in(loop) if len(models) == len(held) == 2 else ():
            if not isinstance(part, ast.Assign) or not isinstance(part.targets[0], ast.Attribute):
                continue
            sides = [ast.unparse(part.targets[0]), ast.unparse(part.value)]
            if sides == [f"{held[0]}.data", f"{held[1]}.data"] and _holds_alone(tree, models[1], models[0]):
                where = scope.at(part, path)
                yield LiveCopy(models[0], models[1], where, where)


def _holds_alone(tree: ast.Module, trained: str, other: str) -> bool:
    given = [
        ast.unparse(arg)
        for scope in scopes(tree)
        for call in scope.calls()
        if "lr" in {keyword.arg for keyword in call.keywords} or "optim" in ast.unparse(call.func)
        for arg in call.args[:1]
    ]
    return any(f"{trained}.parameters()" in text for text in given) and not any(
        other in text for text in given
    )
