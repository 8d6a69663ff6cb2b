"""One variant of a case run once: outputs, loss terms, their gradients, metrics; and set beside eager."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module

from gradclinic.case import Case, Evaluation
from gradclinic.compile.gradients import term_gap, value_gaps
from gradclinic.compile.lifting import rebuilt, tensors
from gradclinic.compile.tracing import no_donated_buffers
from gradclinic.facts.variants import TermGap, ValueGap
from gradclinic.probes._labels import labelled, made_up
from gradclinic.probes._restore import undisturbed
from gradclinic.probes._terms import Gradients, lines_remembered, objective_gradients


@dataclass(frozen=True)
class Measured:
    outputs: Any
    losses: dict[str, Tensor]
    gradients: Gradients
    metrics: dict[str, Any]
    made_up: tuple[str, ...] = ()


def measure(case: Case, variant: Callable[..., Any] | None = None) -> Measured:
    """One forward, one backward per term (and a short one to find terms that are not named)."""
    parameters = parameters_of(case, variant)
    with undisturbed(case), no_donated_buffers():
        outputs = case.outputs(variant)
        batch = labelled(case.batch, outputs)
        with lines_remembered():
            evaluation = Evaluation(outputs, case.score(outputs, batch), case.weights or {})
        gradients, _ = objective_gradients(evaluation, parameters)
        metrics = {name: metric(outputs, batch) for name, metric in (case.metrics or {}).items()}
    # Copies: in-place work of the next variant must not reach into what was seen here.
    kept = rebuilt(outputs, lambda tensor: tensor.detach().clone())
    losses = {name: term.detach() for name, term in evaluation.terms.items()}
    return Measured(kept, losses, gradients, metrics, made_up(batch))


def parameters_of(case: Case, variant: Callable[..., Any] | None) -> Mapping[str, Tensor]:
    """The case's parameters; those of the variant where it is a module of its own weights."""
    own = case.parameters()
    if not isinstance(variant, Module):
        return own
    theirs = dict(variant.named_parameters())
    mine = {id(p) for p in own.values()}
    if any(id(p) in mine for p in theirs.values()):
        return own
    matched = {name: _same(name, parameter, theirs) for name, parameter in own.items()}
    return own if None in matched.values() else {name: p for name, p in matched.items() if p is not None}


def _same(name: str, parameter: Tensor, theirs: Mapping[str, Tensor]) -> Tensor | None:
    """The parameter of this name in another module, whatever wrappers lie around parts of it."""
    wanted = name.split(".")
    found = [
        (path, other)
        for path, other in theirs.items()
        if other.shape == parameter.shape and _in_order(wanted, path.split("."))
    ]
    return min(found, key=lambda pair: len(pair[0]))[1] if found else None


def _in_order(wanted: list[str], path: list[str]) -> bool:
    rest = iter(path)
    return all(part in rest for part in wanted)


def compare(
    case: Case, reference: Measured, found: Measured
) -> tuple[tuple[TermGap, ...], tuple[ValueGap, ...]]:
    def meaning(ratio: float) -> str:
        return integer_meaning(ratio, _sizes(case, reference))

    terms = tuple(
        term_gap(name, grads, found.gradients.get(name, {})) for name, grads in reference.gradients.items()
    )
    values = (
        *value_gaps("output", reference.outputs, found.outputs, meaning),
        *value_gaps("loss", reference.losses, found.losses, meaning),
        *value_gaps("metric", reference.metrics, found.metrics, meaning),
    )
    return terms, values


def _sizes(case: Case, reference: Measured) -> Iterable[tuple[int, str]]:
    """Sizes a factor could come from, the outputs' first."""
    for values in (reference.outputs, case.batch):
        for name, tensor in tensors(values).items():
            for dim, size in enumerate(tensor.shape):
                yield size, f"the size of dimension {dim} of {name or 'the output'}"


def integer_meaning(ratio: float, sizes: Iterable[tuple[int, str]]) -> str:
    """What a factor, its inverse or its root is equal to: `6, the size of dimension 0 of force`."""
    if not math.isfinite(ratio) or ratio <= 0 or math.isclose(ratio, 1.0, rel_tol=1e-6):
        return ""
    factor = max(ratio, 1 / ratio)
    known = list(sizes)
    for power, word in ((1.0, ""), (2.0, "the square root of "), (0.5, "the square of ")):
        whole = factor**power
        if whole < 2 - 1e-6 or not math.isclose(whole, round(whole), rel_tol=1e-6):
            continue
        for size, where in known:
            if size == round(whole):
                return f"{word}{size}, {where}"
    return ""


def in_float64(case: Case) -> Case:
    """A copy in double precision, where rounding cannot be mistaken for a fault; else the case itself."""
    floats = [p for p in [*case.model.parameters(), *case.model.buffers()] if p.is_floating_point()]
    if all(p.dtype is torch.float64 for p in floats):
        return case
    try:
        with undisturbed(case):
            model = copy.deepcopy(case.model).double()
            twin = replace(case, model=model, batch=rebuilt(case.batch, _double), loader=None)
            outputs = tensors(measure(twin).outputs)
    except Exception:  # whatever the user's model raises, it does not allow double precision
        return case
    same = all(t.dtype is torch.float64 for t in outputs.values() if t.is_floating_point())
    return twin if same else case


def _double(tensor: Tensor) -> Tensor:
    return tensor.double() if tensor.is_floating_point() else tensor
