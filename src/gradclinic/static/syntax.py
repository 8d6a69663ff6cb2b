"""Small questions to the syntax tree."""

from __future__ import annotations

import ast

from gradclinic.static import words

_TORCH_METHODS = words.names("train eval step zero_grad backward forward state_dict load_state_dict update")


def is_window(loop: ast.AST) -> bool:
    """`for _ in range(accumulation_steps)`: the micro-batches of one update."""
    return isinstance(loop, ast.For) and bool(words.ACCUMULATION_NAME.search(" ".join(names_in(loop.iter))))


def last_name(node: ast.AST) -> str:
    """`zero_grad` of `self.opt.zero_grad`, `opt` of `opt[0]`: what a thing is called at its end."""
    while True:
        if isinstance(node, ast.Name):
            return node.id
        if isinstance(node, ast.Attribute):
            return node.attr
        if isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Call):
            node = node.func
        elif isinstance(node, ast.Starred | ast.Await):
            node = node.value
        else:
            return ""


def names_in(node: ast.AST) -> list[str]:
    found = []
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            found.append(part.id)
        elif isinstance(part, ast.Attribute):
            found.append(part.attr)
    return found


def torch_method(node: ast.Attribute) -> bool:
    """`self.model.train` is torch's, whatever the file's own `train` may do."""
    if node.attr not in _TORCH_METHODS:
        return False
    receiver = last_name(node.value)
    return any(
        pattern.search(receiver)
        for pattern in (words.MODEL_NAME, words.OPTIMIZER_NAME, words.SCHEDULE_NAME, words.SCALER_NAME)
    ) and not words.DRIVER_NAME.search(receiver)


def targets_of(node: ast.stmt) -> list[ast.expr]:
    """What a statement assigns to; a method call may change what it is called on."""
    if isinstance(node, ast.Assign):
        return node.targets
    if isinstance(node, ast.AugAssign | ast.AnnAssign | ast.For | ast.AsyncFor):
        return [node.target]
    if isinstance(node, ast.Delete):
        return node.targets
    if (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Attribute)
    ):
        return [node.value.func.value]
    return []


def returns(loop: ast.AST) -> bool:
    return any(isinstance(node, ast.Return) for node in ast.walk(loop))
