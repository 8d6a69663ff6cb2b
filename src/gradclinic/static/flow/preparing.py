"""What a method that nothing in sight calls finds ready: other methods of its class have built it before."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradclinic.static.flow.functions import call_function
from gradclinic.static.flow.machine import Machine
from gradclinic.static.flow.values import shadowed
from gradclinic.static.syntax import nodes_in, statements_in
from gradclinic.static.values import Func, Instance, Value
from gradclinic.static.walk import Arguments

MOST_PREPARING = 2


def prepared(machine: Machine, instance: Instance, method: Func) -> dict[str, Value]:
    """Runs the methods that alone build what `method` asks for; the parameters that something was put on.

    `setup(self, trainer, module)` puts a head on the module that `step(self, module, batch)` runs.
    """
    wanted = set(_asked_for(method)) - {("self", name) for name in instance.attrs}
    others = [
        other
        for other in instance.cls.attrs.values()
        if isinstance(other, Func) and other.node is not method.node and other.node not in machine.active
    ]
    builders: dict[tuple[str, str], list[Func]] = {}
    for other in others:
        for place in _built_in(machine, other) & wanted:
            builders.setdefault(place, []).append(other)
    given: dict[str, Value] = {}
    called: list[Func] = []
    for (owner, _), [builder, *more] in builders.items():
        if more or builder in called or len(called) == MOST_PREPARING:
            continue
        called.append(builder)
        if owner != "self":
            given.setdefault(owner, shadowed(owner))
        call_function(machine, builder.of(instance), Arguments(keywords=given, partial=True), builder.node)
    return given


def _asked_for(method: Func) -> Iterator[tuple[str, str]]:
    """The attributes of itself and of its parameters that it calls."""
    names = _parameters(method)
    for node in nodes_in(method.node):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = node.func.value
            if isinstance(owner, ast.Name) and owner.id in names:
                yield owner.id, node.func.attr


def _built_in(machine: Machine, method: Func) -> set[tuple[str, str]]:
    """The attributes of itself and of its parameters that it makes by a call. Every other method asks."""
    built = machine.builds.get(method.node)
    if built is None:
        names = _parameters(method)
        built = machine.builds[method.node] = {
            (target.value.id, target.attr)
            for node in statements_in(method.node)
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
            for target in node.targets
            if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name)
            if target.value.id in names
        }
    return built


def _parameters(method: Func) -> set[str]:
    return {argument.arg for argument in method.node.args.args}
