"""Batches that are slices of the data, changed in place."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from gradclinic.facts.stored import Mutation, StoredData
from gradclinic.static import words
from gradclinic.static.plain.scopes import Scope, scopes
from gradclinic.static.syntax import names_in

_SLICE = re.compile(r"= *\w+\[[^\]\n]*:")
_NAME_BEFORE = re.compile(r"[ \t](\w+) *$")
_LONGEST_NAME = 80
_SIGNS = ("+=", "-=", "*=", "/=")
_SEEN = "the batch is a view of the data, and is changed in place"


def may_tell(text: str) -> bool:
    if not any(sign in text for sign in _SIGNS) or not words.called("backward", text):
        return False
    # Patterns that begin with any name would be tried at every letter of the file.
    before = (text[max(0, found.start() - _LONGEST_NAME) : found.start()] for found in _SLICE.finditer(text))
    sliced = {name[1] for name in map(_NAME_BEFORE.search, before) if name}
    return any(re.search(rf"{name}(?<=[ \t]{name}) *[-+*/]=", text) for name in sliced)


def read(tree: ast.Module, text: str, path: str) -> Iterator[StoredData]:
    for scope in scopes(tree):
        made = {
            node.targets[0].id
            for node in scope.nodes
            if isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and isinstance(node.value, ast.Call)
            and names_in(node.value.func)[-1:] == ["torch"]
        }
        for node in scope.nodes:
            if made and isinstance(node, ast.For) and "backward" in names_in(node):
                yield from _written(node.body, made, scope, path)


def _written(body: list[ast.stmt], made: set[str], scope: Scope, path: str) -> Iterator[StoredData]:
    """`x = data[i : i + n]` and then `x += noise`, straight in the body of a training loop."""
    views: dict[str, str] = {}
    for node in body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            views.pop(node.targets[0].id, None)
            value = node.value
            if (
                isinstance(value, ast.Subscript)
                and isinstance(value.slice, ast.Slice)
                and isinstance(value.value, ast.Name)
                and value.value.id in made
            ):
                views[node.targets[0].id] = value.value.id
        elif (
            isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and node.target.id in views
        ):
            mutation = Mutation(views[node.target.id], None, scope.at(node, path))
            yield StoredData(None, (mutation,), _SEEN)
