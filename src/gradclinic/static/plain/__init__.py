"""Facts that a file shows by itself, without following what it does."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradclinic.static.plain import adapters, orders, rates, samplers, saving, slices, stored

_READERS = (adapters, orders, rates, samplers, saving, slices, stored)


def plainly_may_tell(text: str) -> bool:
    return "torch" in text and any(word in text for reader in _READERS for word in reader.WORDS)


def plain_facts(tree: ast.Module, text: str, path: str) -> Iterator[object]:
    """Each reader looks for its words in the text first: most files have none of them."""
    if "torch" not in text:
        return
    for reader in _READERS:
        if any(word in text for word in reader.WORDS):
            yield from reader.read(tree, text, path)
