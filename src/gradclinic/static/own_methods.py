"""Methods of a model other than forward: whether what they compute has a graph, as what forward gives."""

from __future__ import annotations

import ast

from gradclinic.static import words
from gradclinic.static.syntax import last_name, names_in, nodes_in

SWITCHES = words.names(
    "no_grad inference_mode set_grad_enabled enable_grad autograd grad volatile requires_grad requires_grad_ "
    "train eval"
)
"""Words of a method that may switch gradients, or the mode, by itself."""


def applying(cls: ast.ClassDef) -> frozenset[str]:
    """The methods of a module class that plainly run its layers: `predict(x)` is `self(x).argmax(1)`."""
    methods = [part for part in cls.body if isinstance(part, ast.FunctionDef)]
    if not any(method.name == "forward" for method in methods):
        return frozenset()
    layers = _layers(methods) | {"forward"}
    return frozenset(method.name for method in methods if _applies(method, layers))


def _layers(methods: list[ast.FunctionDef]) -> frozenset[str]:
    """`self.body = nn.Linear(4, 4)`: what is made by a class as the module is made."""
    return frozenset(
        target.attr
        for method in methods
        if method.name == "__init__"
        for node in nodes_in(method)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
        for target in node.targets
        if isinstance(target, ast.Attribute) and last_name(node.value.func)[:1].isupper()
    )


def _applies(method: ast.FunctionDef, layers: frozenset[str]) -> bool:
    """Not under a decorator, nor in a block: that may switch gradients off."""
    parameters = method.args.args
    if method.decorator_list or not parameters or not SWITCHES.isdisjoint(names_in(method)):
        return False
    nodes = nodes_in(method)
    if any(isinstance(node, (ast.With, ast.AsyncWith)) for node in nodes):
        return False
    return any(
        isinstance(node, ast.Call) and _is_layer(node.func, parameters[0].arg, layers) for node in nodes
    )


def _is_layer(func: ast.expr, own: str, layers: frozenset[str]) -> bool:
    if isinstance(func, ast.Attribute):
        return isinstance(func.value, ast.Name) and func.value.id == own and func.attr in layers
    return isinstance(func, ast.Name) and func.id == own
