"""Nested values taken apart into their tensors and put together again.

Unlike torch's own pytree this looks into dataclasses, which batches and outputs often are.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from torch import Tensor


def leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Every leaf with the path to it: `force`, `layers.0`."""
    children = _children(value)
    if children is None:
        yield name, value
        return
    for key, child in children:
        yield from leaves(child, f"{name}.{key}" if name else str(key))


def tensors(value: Any) -> dict[str, Tensor]:
    return {name: leaf for name, leaf in leaves(value) if isinstance(leaf, Tensor)}


def rebuilt(value: Any, replace: Callable[[Tensor], Any]) -> Any:
    """The same build with every tensor, in the order of `leaves`, replaced."""
    if isinstance(value, Tensor):
        return replace(value)
    children = _children(value)
    if children is None:
        return value
    parts = [(key, rebuilt(child, replace)) for key, child in children]
    if isinstance(value, Mapping):
        try:
            return type(value)(parts)  # type: ignore[call-arg]
        except TypeError:
            return dict(parts)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.replace(value, **{str(key): part for key, part in parts})
    made = [part for _, part in parts]
    return type(value)(*made) if hasattr(value, "_fields") else type(value)(made)


def filled(value: Any, given: Sequence[Any]) -> Any:
    """The same build holding `given` in place of its tensors."""
    queue = iter(given)
    return rebuilt(value, lambda _: next(queue))


def _children(value: Any) -> Iterable[tuple[Any, Any]] | None:
    if isinstance(value, Mapping):
        return list(value.items())
    if isinstance(value, (list, tuple)):
        return list(enumerate(value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [(f.name, getattr(value, f.name)) for f in dataclasses.fields(value) if f.init]
    return None
