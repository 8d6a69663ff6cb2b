"""Reading the autograd graph for where numbers break: out of range forward, or infinite slopes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

Node = Any
Tensor = torch.Tensor


def forward_order(root: Node, *, most: int = 20_000) -> list[Node]:
    """The nodes below `root` in the order they ran forward; empty if there are too many."""
    seen = {root}
    todo = [root]
    while todo:
        node = todo.pop()
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                todo.append(following)
        if len(seen) > most:
            return []
    made = [node for node in seen if not hasattr(node, "variable")]
    return sorted(made, key=lambda node: node._sequence_nr())


def operation(node: Node) -> str:
    """`log` for `LogBackward0`."""
    return operation_of(node.name())


def operation_of(name: str) -> str:
    word = name.rpartition("::")[2].partition("Backward")[0]
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in word).strip("_")


def saved(node: Node, name: str) -> Tensor | None:
    """What a node kept for its backward; None if it keeps no such thing or it was overwritten since."""
    try:
        value = getattr(node, f"_saved_{name}", None)
    except RuntimeError:
        return None
    return value.detach() if isinstance(value, Tensor) else None


OUT_OF_RANGE = "is out of range"
_RESULTS = ("result", "result0", "result1", "output", "out")
_INPUTS = ("self", "other", "input", "mat1", "mat2")
_FORWARD: dict[str, Callable[[Tensor], Tensor]] = {
    "log": torch.log,
    "log2": torch.log2,
    "log10": torch.log10,
    "log1p": torch.log1p,
    "acos": torch.acos,
    "asin": torch.asin,
    "acosh": torch.acosh,
    "atanh": torch.atanh,
    "lgamma": torch.lgamma,
}
"""Operations that keep their input only, from which the result is had again."""


def first_broken(nodes: Sequence[Node]) -> tuple[int, str] | None:
    """The first node whose result is not finite though what it was given is, and why."""
    for position, node in enumerate(nodes):
        why = _breaks(node)
        if why is not None:
            return position, why
    return None


def _breaks(node: Node) -> str | None:
    kind = operation(node)
    given = saved(node, "self")
    if kind in _FORWARD and given is not None:
        if _finite(given) and not _finite(_FORWARD[kind](given)):
            return f"{kind} of {float(given.min()):.3g}"
        return None
    if kind == "div" and _has(saved(node, "other"), 0.0):
        return "division by zero"
    results = _kept(node, _RESULTS)
    if results and not all(map(_finite, results)) and all(map(_finite, _kept(node, _INPUTS))):
        return f"the result of {kind} {OUT_OF_RANGE}"
    return None


def broken_data(nodes: Sequence[Node]) -> int | None:
    """The first node that was handed a value that is not finite by the data, not by another node."""
    for position, node in enumerate(nodes):
        for place, name in ((0, "self"), (1, "other"), (0, "input"), (0, "mat1"), (1, "mat1")):
            value = saved(node, name)
            if value is None or _finite(value) or place >= len(node.next_functions):
                continue
            if node.next_functions[place][0] is None:
                return position
    return None


def infinite_slopes(nodes: Sequence[Node]) -> Iterator[tuple[int, str]]:
    """Nodes whose derivative is infinite at a value they were given, even where the result is fine."""
    for position, node in enumerate(nodes):
        look = _SLOPES.get(operation(node))
        why = look(node) if look is not None else None
        if why is not None:
            yield position, why


def _sqrt(node: Node) -> str | None:
    return "the slope of sqrt at 0 is infinite" if _has(saved(node, "result"), 0.0) else None


def _pow(node: Node) -> str | None:
    exponent = getattr(node, "_saved_exponent", None)
    if not isinstance(exponent, int | float) or exponent >= 1 or exponent == 0:
        return None
    return f"the slope of x**{exponent:g} at 0 is infinite" if _has(saved(node, "self"), 0.0) else None


def _log(node: Node) -> str | None:
    return "the slope of log at 0 is infinite" if _has(saved(node, "self"), 0.0) else None


def _div(node: Node) -> str | None:
    return "a division by zero" if _has(saved(node, "other"), 0.0) else None


def _arc(node: Node) -> str | None:
    given = saved(node, "self")
    at_edge = given is not None and bool((given.abs() >= 1).any())
    return f"the slope of {operation(node)} at 1 and -1 is infinite" if at_edge else None


def _std(node: Node) -> str | None:
    return "the slope of std at equal values is infinite" if _has(saved(node, "result"), 0.0) else None


_SLOPES: dict[str, Callable[[Node], str | None]] = {
    "sqrt": _sqrt,
    "pow": _pow,
    "log": _log,
    "div": _div,
    "acos": _arc,
    "asin": _arc,
    "std": _std,
}
STEEP_AT_AN_EDGE = _SLOPES.keys() - {"pow", "div"}
"""Powers are mostly squares, and most divisors are constants."""


def _kept(node: Node, names: Sequence[str]) -> list[Tensor]:
    return [value for name in names if (value := saved(node, name)) is not None]


def _has(tensor: Tensor | None, value: float) -> bool:
    return tensor is not None and tensor.is_floating_point() and bool((tensor == value).any())


def _finite(tensor: Tensor) -> bool:
    return not tensor.is_floating_point() or bool(torch.isfinite(tensor).all())
