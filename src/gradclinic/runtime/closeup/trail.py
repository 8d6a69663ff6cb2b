"""How tensors came to be: for each, the operation that made it and what that was given.

A trail holds no tensors, only names, places and shapes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.utils.weak import WeakTensorKeyDictionary

from gradclinic.facts.cut import CutKind
from gradclinic.facts.location import Location
from gradclinic.facts.loss import Op

RESHAPING = frozenset(
    {
        "view",
        "reshape",
        "squeeze",
        "unsqueeze",
        "flatten",
        "contiguous",
        "clone",
        "to",
        "float",
        "double",
        "transpose",
        "permute",
        "t",
        "movedim",
        "expand",
        "__getitem__",
        "view_as",
        "mT",
    }
)
_ALIASES = {
    "conv1d": "conv",
    "conv2d": "conv",
    "conv3d": "conv",
    "conv_transpose1d": "conv",
    "conv_transpose2d": "conv",
    "relu_": "relu",
    "sigmoid_": "sigmoid",
    "tanh_": "tanh",
    "__sub__": "sub",
    "__rsub__": "rsub",
    "__add__": "add",
    "__radd__": "add",
    "__iadd__": "add",
    "add_": "add",
    "sub_": "sub",
    "subtract": "sub",
    "__mul__": "mul",
    "__rmul__": "mul",
    "mul_": "mul",
    "multiply": "mul",
    "__truediv__": "div",
    "div_": "div",
    "true_divide": "div",
    "__pow__": "pow",
    "square": "pow",
    "__matmul__": "matmul",
    "bmm": "matmul",
}


@dataclass(frozen=True, slots=True, eq=False)
class Break:
    """A value that left the graph here."""

    kind: CutKind
    where: Location
    leaves: frozenset[int]
    """Identities of the leaves behind it."""
    number: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Edge:
    """A value at the edge of an operation's domain."""

    op: str
    where: Location
    what: str


@dataclass(frozen=True, slots=True, eq=False)
class Made:
    op: Op
    parents: tuple[Made, ...] = ()
    has_graph: bool = False
    marks: frozenset[Break | Edge] = frozenset()
    """What happened on any way to it."""
    lost_terms: frozenset[Break] = frozenset()
    """Breaks behind summands that had no graph when they were added to one that had."""
    given: tuple[tuple[int, ...], ...] = ()
    """Shapes of the tensors it was given."""
    carrying: tuple[bool, ...] = ()
    """Which of these carried a graph."""

    def through(self) -> Made:
        """The operation behind those that only change the shape."""
        made = self
        while made.op.name in RESHAPING and len(made.parents) == 1:
            made = made.parents[0]
        return made


class Trail:
    def __init__(self) -> None:
        self._made = WeakTensorKeyDictionary()

    def of(self, tensor: torch.Tensor) -> Made | None:
        found: Made | None = self._made.get(tensor)  # type: ignore[no-untyped-call]
        return found

    def keep(self, tensor: torch.Tensor, made: Made) -> None:
        self._made[tensor] = made

    def mark(self, tensor: torch.Tensor, marks: Iterable[Break | Edge]) -> None:
        made = self.of(tensor)
        if made is not None:
            self._made[tensor] = replace(made, marks=made.marks | frozenset(marks))

    def chain(self, tensor: torch.Tensor, *, most: int = 6) -> tuple[Op, ...]:
        """The operations that made it, last first, as long as there is only one way back."""
        ops: list[Op] = []
        made = self.of(tensor)
        while made is not None and len(ops) < most:
            made = made.through()
            if made.op.name in RESHAPING:
                break
            ops.append(made.op)
            made = made.parents[0] if len(made.parents) == 1 else None
        return tuple(ops)


def op_of(
    func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: torch.Tensor, where: Location
) -> Op:
    name = name_of(func)
    dim, implicit = None, False
    if name in ("softmax", "log_softmax"):
        given = kwargs.get("dim", args[1] if len(args) > 1 else None)
        implicit = given is None
        if isinstance(given, int):
            dim = given % max(result.dim(), 1)
        elif implicit:
            dim = 0 if result.dim() in (0, 1, 3) else 1
    return Op(name, where, dim, implicit, tuple(result.shape))


def name_of(func: Any) -> str:
    name = getattr(func, "__name__", "")
    return _ALIASES.get(name, name)


def tensors_in(values: Iterable[Any]) -> Iterator[torch.Tensor]:
    """Tensors among the arguments, one container deep."""
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from (one for one in value if isinstance(one, torch.Tensor))
