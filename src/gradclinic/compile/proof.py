"""The proof that a compiled function is the eager one: same outputs, same gradients of every term."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import torch
from torch import Tensor

from gradclinic.compile.gradients import term_gap, term_gradients, value_gaps
from gradclinic.compile.lifted import Lifted
from gradclinic.compile.lifting import tensors
from gradclinic.errors import GradclinicError
from gradclinic.facts.variants import VariantReport

Terms = Mapping[str, Callable[[Any], Tensor]]
Gradients = dict[str, dict[str, Tensor | None]]


class NotEquivalent(GradclinicError):
    """The compiled function is not the eager one; `report` says where they part."""

    def __init__(self, report: VariantReport, tolerance: float) -> None:
        super().__init__(_refusal(report, tolerance))
        self.report = report


def prove(
    lifted: Lifted,
    run: Callable[[], Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    terms: Terms | None,
    tolerance: float,
) -> VariantReport:
    """Compare `run()` with the eager call; raise `NotEquivalent` where they differ."""
    wanted = dict(zip(lifted.names, lifted.state(), strict=True)) | {
        f"input {name}": tensor for name, tensor in tensors((args, kwargs)).items()
    }
    wanted = {name: tensor for name, tensor in wanted.items() if tensor.requires_grad}
    with unchanged(lifted):
        eager = lifted.call(args, kwargs)
        expected = _where_eager_can(_scored(eager, terms), wanted)
    with unchanged(lifted):
        try:
            made = run()
            scored = _scored(made, terms)
            found = term_gradients({name: scored[name] for name in expected}, wanted)
        except Exception as error:
            report = VariantReport("compiled", own=False, error=one_line(error))
            raise NotEquivalent(report, tolerance) from error
    report = VariantReport(
        "compiled",
        own=False,
        terms=tuple(term_gap(name, grads, found.get(name, {})) for name, grads in expected.items()),
        values=value_gaps("output", eager, made, lambda _: ""),
    )
    if not report.agrees(tolerance):
        raise NotEquivalent(report, tolerance)
    return report


def _where_eager_can(scored: dict[str, Tensor], wanted: Mapping[str, Tensor]) -> Gradients:
    """Without the terms eager cannot differentiate: an inner gradient may have freed their graph."""
    found: Gradients = {}
    for name, term in scored.items():
        with suppress(RuntimeError):
            found |= term_gradients({name: term}, wanted)
    return found


def one_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    said = " ".join(lines[: 2 if lines and lines[0].endswith(":") else 1])
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def _scored(outputs: Any, terms: Terms | None) -> dict[str, Tensor]:
    if terms is not None:
        return {name: term(outputs) for name, term in terms.items()}
    return {
        name or "output": _projected(tensor)
        for name, tensor in tensors(outputs).items()
        if tensor.is_floating_point()
    }


def _projected(output: Tensor) -> Tensor:
    """A number that every entry of the output takes part in, with a weight of its own."""
    generator = torch.Generator().manual_seed(output.numel())
    weights = torch.rand(output.shape, generator=generator, dtype=torch.float64) + 0.5
    return (output * weights.to(output.device, output.dtype)).sum()


@contextmanager
def unchanged(lifted: Lifted) -> Iterator[None]:
    """Running statistics and random streams come out as they went in."""
    kept = [(buffer, buffer.detach().clone()) for buffer in lifted.module.buffers()]
    with torch.random.fork_rng():
        try:
            yield
        finally:
            with torch.no_grad():
                for buffer, before in kept:
                    buffer.copy_(before)


def _refusal(report: VariantReport, tolerance: float) -> str:
    if report.error:
        return f"the compiled function cannot be run: {report.error}"
    wrong = report.wrong_terms(tolerance)
    if not wrong:
        names = ", ".join(f"{v.name} by {v.agreement.error:.1e}" for v in report.wrong_values(tolerance))
        return f"the compiled function is not handed out: its outputs differ from eager ({names})"
    rows = "; ".join(
        f"{gap.term}: {gap.reached}/{gap.reached_in_reference} parameters, error {gap.agreement.error:.1e}, "
        f"cosine {gap.agreement.cosine:.6f}, first {gap.differing(tolerance)[0]}"
        for gap in wrong
    )
    return f"the compiled function is not handed out: its gradients differ from eager ({rows})"
