"""Facts that a file shows by itself, without following what it does."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from types import ModuleType

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
    unchecked,
)

_READERS = (adapters, by_hand, copies, descents, orders, rates, samplers, saving, slices, stored, unchecked)


def readers_for(code: str) -> tuple[ModuleType, ...]:
    """Those that the words of a file, without its remarks, let expect something of: of most files none."""
    return tuple(reader for reader in _READERS if reader.may_tell(code))


def plain_facts(readers: tuple[ModuleType, ...], tree: ast.Module, text: str, path: str) -> Iterator[object]:
    for reader in readers:
        yield from reader.read(tree, text, path)
