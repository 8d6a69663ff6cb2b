"""Does the model train the same when it is traced or compiled, and if not, what breaks it?

Every variant is run once and compared with eager: per loss term which parameters get a gradient,
how far it is off, its cosine and norm ratio, the predictions and the metrics. A variant of the
case's own that differs is made again with one thing changed after the other, until the cause is
known. Without own variants, gradclinic's and torch.compile's are tried.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch

from gradclinic.case import Case
from gradclinic.compile.gradients import tolerance_for
from gradclinic.compile.graphs import compiled_graph, record
from gradclinic.compile.lifted import Lifted
from gradclinic.compile.lifting import tensors
from gradclinic.compile.proof import one_line, unchanged
from gradclinic.errors import UsageError
from gradclinic.facts.variants import CompileReport, VariantReport
from gradclinic.probes._bisection import Suspect, bisect
from gradclinic.probes._budget import Budget, Progress, silent
from gradclinic.probes._compile_tables import conclusion, tables
from gradclinic.probes._measure import Measured, compare, in_float64, measure
from gradclinic.probes._regression import write_test
from gradclinic.probes.outcome import Outcome

BUDGET = 1800.0
BUILT_IN = ("traced", "aot_eager", "inductor", "torch.compile")


def probe_compile(
    case: Case, variants: Sequence[str] | None = None, progress: Progress = silent
) -> CompileReport:
    """Compare each variant with eager; `variants` picks from the case's own and from BUILT_IN."""
    own = dict(case.variants or {})
    chosen = tuple(variants) if variants else (*own, "traced") if own else BUILT_IN
    unknown = [name for name in chosen if name not in own and name not in BUILT_IN]
    if unknown:
        known = ", ".join([*own, *BUILT_IN])
        raise UsageError(f"there is no variant {unknown[0]!r}; this case can be run as {known}")
    double = in_float64(case)
    report = _report(double, chosen, progress)
    if double is not case and _nothing_flows(report):
        # A variant that keeps to the original model cannot be judged on a copy of it.
        report = _report(case, chosen, progress)
    return report


def _report(case: Case, chosen: Sequence[str], progress: Progress) -> CompileReport:
    reference = measure(case)
    tolerance = tolerance_for([*case.parameters().values(), *tensors(reference.outputs).values()])
    reports = []
    for index, name in enumerate(chosen):

        def doing(what: str, name: str = name, index: int = index) -> None:
            progress(f"{name}: {what}", index / len(chosen))

        doing("compiling")
        build = (case.variants or {}).get(name)
        if build is None:
            reports.append(_built_in(case, name, reference))
            continue
        suspect = Suspect(case, name, build, reference, tolerance)
        attempt = suspect.attempt()
        if attempt.report.agrees(tolerance):
            reports.append(attempt.report)
        else:
            reports.append(replace(attempt.report, trials=bisect(suspect, attempt, doing)))
    return CompileReport(
        case=case.name or type(case.model).__name__,
        dtype=_dtype(case),
        tolerance=tolerance,
        variants=tuple(reports),
        made_up=reference.made_up,
    )


def _built_in(case: Case, name: str, reference: Measured) -> VariantReport:
    backend = {"traced": "", "torch.compile": "inductor"}.get(name, name)
    try:
        found = measure(case, _variant(case, name))
    except Exception as error:  # torch's compilers raise much; each becomes a row
        return VariantReport(name, own=False, backend=backend, error=one_line(error))
    terms, values = compare(case, reference, found)
    return VariantReport(name, own=False, backend=backend, terms=terms, values=values)


def _variant(case: Case, name: str) -> Callable[..., Any]:
    if name == "torch.compile":
        return torch.compile(case.model)
    lifted = Lifted(case.model)

    def traced(*args: Any, **kwargs: Any) -> Any:
        with unchanged(lifted):
            recorded = record(lifted, args, kwargs)
        backend = "none" if name == "traced" else name
        return replace(recorded, run=compiled_graph(recorded.graph, backend, False))(lifted, args, kwargs)

    return traced


def _nothing_flows(report: CompileReport) -> bool:
    return any(
        variant.own and (variant.error or (variant.terms and not any(term.reached for term in variant.terms)))
        for variant in report.variants
    )


def _dtype(case: Case) -> str:
    return ", ".join(sorted({str(p.dtype).removeprefix("torch.") for p in case.parameters().values()}))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--variants",
        metavar="NAMES",
        help=f"some of its own and of {', '.join(BUILT_IN)} (default: its own and traced, or all these)",
    )
    parser.add_argument("--write-test", metavar="FILE", help="write a regression test of these gradients")


def run(case: Case, args: argparse.Namespace, budget: Budget) -> Outcome:
    chosen = [name.strip() for name in args.variants.split(",")] if args.variants else None
    report = probe_compile(case, chosen, budget.progress)
    said = conclusion(report)
    if args.write_test:
        said = f"{said} {write_test(args.write_test, args.target, report)}"
    return Outcome((report,), said, tables(report))
