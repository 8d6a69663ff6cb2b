"""Gradients and values of a variant set beside those of eager, as facts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from gradclinic.compile.lifting import leaves
from gradclinic.facts.variants import Agreement, ParameterGap, Reach, TermGap, ValueGap

Gradients = Mapping[str, Tensor | None]

_TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-3, torch.float16: 5e-2, torch.bfloat16: 5e-2}
"""Relative error of a whole term's gradient that rounding and another order of sums can make."""


def tolerance_for(tensors: Iterable[Tensor]) -> float:
    """By the coarsest floating type among them."""
    return max((_TOLERANCE.get(t.dtype, 1e-3) for t in tensors if t.is_floating_point()), default=1e-10)


def term_gradients(
    terms: Mapping[str, Tensor], parameters: Mapping[str, Tensor], *, done: Callable[[], None] = lambda: None
) -> dict[str, dict[str, Tensor | None]]:
    """One backward per term over the one graph they share; a term without graph reaches nothing."""
    found: dict[str, dict[str, Tensor | None]] = {}
    for name, term in terms.items():
        if not term.requires_grad:
            found[name] = dict.fromkeys(parameters)
            continue
        grads = torch.autograd.grad(term, list(parameters.values()), retain_graph=True, allow_unused=True)
        found[name] = dict(zip(parameters, grads, strict=True))
        done()
    return found


def term_gap(term: str, reference: Gradients, variant: Gradients) -> TermGap:
    """Compared as one vector, and parameter by parameter on the scale of the whole."""
    whole = _length(reference.values())
    gaps = [
        ParameterGap(
            name,
            reach(grad, whole),
            reach(variant.get(name), whole),
            _norm(grad),
            _over(_norm(_difference(grad, variant.get(name))), whole),
        )
        for name, grad in reference.items()
    ]
    theirs = [variant.get(name) for name in reference]
    return TermGap(term, _agreement(list(reference.values()), theirs), tuple(gaps))


def reach(grad: Tensor | None, whole: float) -> Reach:
    """Rounding beside the rest of the term's gradient counts as zero."""
    if grad is None:
        return Reach.NONE
    rounding = 8 * torch.finfo(grad.dtype).eps * whole
    return Reach.VALUE if not _norm(grad) <= rounding else Reach.ZERO


def value_gaps(
    kind: str, reference: Any, variant: Any, meaning: Callable[[float], str]
) -> tuple[ValueGap, ...]:
    """Every number in two nested values of one build; what only one of them has is left out."""
    theirs = dict(_numbers(variant))
    gaps = []
    for name, value in _numbers(reference):
        other = theirs.get(name)
        if other is None:
            continue
        if other.shape != value.shape and other.numel() != value.numel():
            apart = Agreement(math.inf, math.nan, math.nan)
            gaps.append(ValueGap(kind, name, apart, value.numel(), _shapes(value, other)))
            continue
        agreement = _agreement([value], [other.reshape(value.shape)])
        factor = meaning(agreement.ratio) if agreement.only_scaled else ""
        gaps.append(ValueGap(kind, name, agreement, value.numel(), factor))
    return tuple(gaps)


def _shapes(value: Tensor, other: Tensor) -> str:
    return f"shape {tuple(other.shape)} in place of {tuple(value.shape)}"


def _numbers(value: Any) -> Iterable[tuple[str, Tensor]]:
    for name, leaf in leaves(value):
        if isinstance(leaf, Tensor) and (leaf.is_floating_point() or leaf.dtype in _COUNTS):
            yield name, leaf.detach().to(torch.float64)
        elif isinstance(leaf, float):
            yield name, torch.tensor(leaf, dtype=torch.float64)


_COUNTS = (torch.int32, torch.int64)


def _agreement(reference: Sequence[Tensor | None], variant: Sequence[Tensor | None]) -> Agreement:
    ours, theirs = _length(reference), _length(variant)
    pairs = list(zip(reference, variant, strict=True))
    apart = _length([_difference(a, b) for a, b in pairs])
    dot = sum(float((a * b).sum()) for a, b in pairs if a is not None and b is not None)
    cosine = dot / (ours * theirs) if ours and theirs else math.nan
    return Agreement(_over(apart, ours), cosine, _over(theirs, ours))


def _difference(a: Tensor | None, b: Tensor | None) -> Tensor | None:
    if a is None or b is None:
        return b if a is None else a
    return a - b


def _length(parts: Iterable[Tensor | None]) -> float:
    return math.sqrt(sum(_norm(part) ** 2 for part in parts))


def _norm(part: Tensor | None) -> float:
    return 0.0 if part is None else float(torch.linalg.vector_norm(part.detach().to(torch.float64)))


def _over(value: float, whole: float) -> float:
    return value / whole if whole else (math.inf if value else 0.0)
