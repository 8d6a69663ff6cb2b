"""Finding where values leave the graph, and following what becomes of them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch

from gradclinic.facts.cut import CutKind
from gradclinic.facts.location import Location
from gradclinic.runtime import graph
from gradclinic.runtime.closeup.trail import Break, Edge, Made, Trail
from gradclinic.runtime.values import number, readable

MOST_WALKS = 200
_TO_NUMBER = frozenset({"item", "__float__", "tolist", "__int__"})
_SUMS = frozenset({"add", "sub", "rsub"})
APPLY_WEIGHTS = frozenset(
    {
        "linear",
        "conv",
        "matmul",
        "addmm",
        "mm",
        "embedding",
        "einsum",
        "multi_head_attention_forward",
        "lstm",
        "gru",
    }
)
_SHORT = 3
"""Digits of a factor that a person would write."""
LIKELIER = (CutKind.GRAD, CutKind.NUMPY, CutKind.TENSOR, CutKind.ITEM, CutKind.DETACH, CutKind.NO_GRAD)
"""Of several cuts behind one value, the one that was less likely meant comes first."""


class Breaks:
    def __init__(self, trail: Trail) -> None:
        self._trail = trail
        self._numbers: list[Break] = []
        self._exported: list[Break] = []
        self._walks = 0

    def begin_stage(self) -> None:
        self._walks = 0

    def forget_numbers(self) -> None:
        """A new update begins."""
        self._numbers.clear()
        self._exported.clear()

    def at(
        self, name: str, args: tuple[Any, ...], tensors: list[torch.Tensor], result: Any, where: Location
    ) -> Break | None:
        """The break this call makes, if it makes one."""
        kind = self._kind(name, args, tensors, result)
        if kind is None:
            return None
        carrying = [tensor for tensor in tensors if tensor.requires_grad]
        self._walks += 1
        leaves = graph.reached(carrying) if self._walks <= MOST_WALKS else None
        made = Break(
            kind, where, frozenset(map(id, leaves or ())), result if isinstance(result, float) else None
        )
        if kind is CutKind.ITEM:
            self._numbers.append(made)
        if kind is CutKind.NUMPY:
            self._exported.append(made)
        return made

    def _kind(
        self, name: str, args: tuple[Any, ...], tensors: list[torch.Tensor], result: Any
    ) -> CutKind | None:
        if not torch.is_grad_enabled():
            on = any(tensor.requires_grad for tensor in tensors)
            return CutKind.NO_GRAD if on and isinstance(result, torch.Tensor) and name != "detach" else None
        if not any(tensor.grad_fn is not None for tensor in tensors):
            return None
        if name in _TO_NUMBER:
            return CutKind.ITEM
        if name in ("detach", "data"):
            return CutKind.DETACH
        if name == "tensor":
            return CutKind.TENSOR
        return None

    def exported(self, tensor: torch.Tensor, where: Location) -> None:
        """A tensor was handed to NumPy: what it was cut from is known by its marks."""
        made = self._trail.of(tensor)
        behind = [m for m in made.marks if isinstance(m, Break)] if made is not None else []
        leaves = frozenset(leaf for one in behind for leaf in one.leaves)
        if leaves:
            self._exported.append(Break(CutKind.NUMPY, where, leaves))

    def imported(self) -> frozenset[Break]:
        """Breaks that a value which comes from NumPy may carry."""
        return frozenset(self._exported[-4:])

    def lost(self, name: str, args: tuple[Any, ...], result: torch.Tensor) -> frozenset[Break]:
        """Breaks behind a summand without a graph, added to one that has a graph."""
        if name not in _SUMS or result.numel() != 1 or not result.requires_grad:
            return frozenset()
        if _lends_gradient(args, result):
            return frozenset()
        for given in args[:2]:
            if isinstance(given, torch.Tensor):
                made = self._trail.of(given)
                if made is not None and not given.requires_grad and given.numel() == 1:
                    return _likeliest(m for m in made.marks if isinstance(m, Break) and m.leaves)
            elif isinstance(given, float) and given:
                return frozenset(
                    one for one in self._numbers if _is_multiple(given, one.number) and one.leaves
                )
        return frozenset()

    def carried(
        self, name: str, tensors: list[torch.Tensor], parents: list[Made], result: torch.Tensor
    ) -> frozenset[Break | Edge]:
        """The marks that go on to the result."""
        marks = frozenset(mark for made in parents for mark in made.marks)
        if name in APPLY_WEIGHTS or name == "detach" or _weighs(name, tensors, self._trail):
            marks = frozenset(m for m in marks if not (isinstance(m, Break) and m.kind is CutKind.GRAD))
        return marks


def _likeliest(breaks: Iterable[Break]) -> frozenset[Break]:
    """A target computed with gradients off is cut in every layer, as it should be: beside a value that was
    detached it is not to blame, and alone it is one cut."""
    ranked = sorted(breaks, key=lambda one: (LIKELIER.index(one.kind), -len(one.leaves)))
    if not ranked or ranked[0].kind is CutKind.NO_GRAD:
        return frozenset(ranked[:1])
    return frozenset(one for one in ranked if one.kind is ranked[0].kind)


def _lends_gradient(args: tuple[Any, ...], result: torch.Tensor) -> bool:
    """`value + (surrogate - surrogate.item())`: what has the graph is zero, there for its gradient alone."""
    carrying = [one for one in (*args[:2], result) if isinstance(one, torch.Tensor) and one.requires_grad]
    return any(one.numel() == 1 and number(one) == 0 for one in carrying)


def edge_of(name: str, args: tuple[Any, ...], parents: list[Made], where: Location) -> Edge | None:
    """An input for which the derivative does not exist."""
    position = 1 if name == "div" else 0
    if name not in ("log", "log2", "log10", "sqrt", "rsqrt", "reciprocal", "div") or len(args) <= position:
        return None
    given = args[position]
    if not isinstance(given, torch.Tensor) or not given.requires_grad or given.numel() > 1_000_000:
        return None
    if not readable(given) or (parents and parents[0].op.name in ("relu", "clamp", "clamp_min")):
        return None
    low = number(given.detach().abs().min() if name == "div" else given.detach().min())
    if low is None or math.isnan(low) or low > 0:
        return None
    return Edge(name, where, f"{low:g}")


def _weighs(name: str, tensors: list[torch.Tensor], trail: Trail) -> bool:
    """A number made of gradients multiplies a loss: a weight, as adaptive losses use."""
    return (
        name in ("mul", "div")
        and len(tensors) == 2
        and any(not one.requires_grad and one.numel() == 1 for one in tensors)
    )


def _is_multiple(given: float, value: float | None) -> bool:
    """`given` is `value` times a factor that somebody could have typed."""
    if not value or not math.isfinite(value) or len(f"{value:.9g}".strip("-0.").replace(".", "")) < 6:
        return False
    ratio = abs(given / value)
    if not math.isfinite(ratio) or ratio == 0:
        return False
    return math.isclose(ratio, float(f"{ratio:.{_SHORT}g}"), rel_tol=1e-9)
