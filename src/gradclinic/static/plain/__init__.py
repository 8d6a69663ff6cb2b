"""Facts that a file shows by itself, without following what it does."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradclinic.static.plain import (
    adapters,
    by_hand,
    copies,
    descents,
    orders,
    rates,
    samplers,
    saving,
    slices,
    stored,
)

_READERS = (adapters, by_hand, copies, descents, orders, rates, samplers, saving, slices, stored)


def plainly_may_tell(text: str) -> bool:
    return any(reader.may_tell(text) for reader in _READERS)


def plain_facts(tree: ast.Module, text: str, path: str) -> Iterator[object]:
    """Each reader looks at the text first: most files have nothing for it."""
    for reader in _READERS:
        if reader.may_tell(text):
            yield from reader.read(tree, text, path)
