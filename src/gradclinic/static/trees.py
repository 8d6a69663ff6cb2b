"""Syntax trees, each made once for all who ask: many files of a project import the same module."""

from __future__ import annotations

import ast
from collections import OrderedDict

from gradclinic.static.legacy import parse

MOST_TEXT = 3_000_000
"""Characters whose trees are kept: about a hundred megabytes of them."""


class _Shelf:
    """Those that were asked for last."""

    def __init__(self) -> None:
        self.trees: OrderedDict[tuple[str, str], ast.Module] = OrderedDict()
        self.size = 0

    def get(self, text: str, path: str) -> ast.Module | None:
        found = self.trees.get((path, text))
        if found is not None:
            self.trees.move_to_end((path, text))
        return found

    def put(self, text: str, path: str, tree: ast.Module) -> None:
        self.trees[path, text] = tree
        self.size += len(text)
        while self.size > MOST_TEXT and len(self.trees) > 1:
            (_, oldest), _ = self.trees.popitem(last=False)
            self.size -= len(oldest)


_shelf = _Shelf()


def tree_of(text: str, path: str) -> ast.Module:
    """Nobody may change it, for all share it. SyntaxError, ValueError and the like are those of `parse`."""
    found = _shelf.get(text, path)
    if found is None:
        found = parse(text, path)
        _shelf.put(text, path, found)
    return found
