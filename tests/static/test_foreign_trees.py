"""Other tools of the same process, notebooks' tracebacks among them, write on syntax trees of their own."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.static.reading import only_tape, spelled
from tests.static.test_simple_loops import PLAIN


class Foreign(ast.Name):
    @property
    def id(self) -> str:  # type: ignore[override]
        raise AssertionError("read a tree that is not of this source")


@pytest.fixture
def parents_on_shared_nodes() -> Iterator[None]:
    """`Load()` is one object in every tree: a tool that notes parents notes the parent of its own tree."""
    expression = ast.parse("x", mode="eval").body
    assert isinstance(expression, ast.Name)
    shared = expression.ctx
    shared.parent = Foreign()  # type: ignore[attr-defined]
    yield
    del shared.parent  # type: ignore[attr-defined]


@pytest.mark.usefixtures("parents_on_shared_nodes")
def test_what_others_hang_on_shared_nodes_is_not_read() -> None:
    assert spelled(only_tape(PLAIN)).startswith("epoch batch zero_grad backward clip step ")
