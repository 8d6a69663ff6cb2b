"""The comparison of variants as a user reads it."""

from __future__ import annotations

import math

from gradclinic.facts.variants import CompileReport, Reach, TermGap, VariantReport
from gradclinic.findings.table import Table

MOST_PARAMETERS = 12


def conclusion(report: CompileReport) -> str:
    wrong = report.wrong()
    precision = f"in {report.dtype}, to a relative error of {report.tolerance:.0e}"
    if not wrong:
        named = ", ".join(variant.name for variant in report.variants)
        return f"eager and {named} agree {precision}."
    named = ", ".join(variant.name for variant in wrong)
    return f"{named} {'does' if len(wrong) == 1 else 'do'} not agree with eager ({precision})."


def tables(report: CompileReport) -> tuple[Table, ...]:
    return (_gradients(report), *_values(report), *_parameters(report), *_trials(report))


def _gradients(report: CompileReport) -> Table:
    rows = [row for variant in report.variants for row in _gradient_rows(variant, report.tolerance)]
    notes = tuple(f"made-up labels for {name}: flow is right, values mean nothing" for name in report.made_up)
    columns = ("variant", "term", "eager", "variant", "error", "cosine", "ratio", "")
    return Table(f"gradient of each term beside eager, {report.case}", columns, tuple(rows), notes)


def _gradient_rows(variant: VariantReport, tolerance: float) -> list[tuple[str, ...]]:
    if variant.error:
        return [(variant.name, "", "", "", "", "", "", variant.error)]
    return [
        (
            variant.name,
            gap.term,
            f"{gap.reached_in_reference}/{len(gap.parameters)}",
            f"{gap.reached}/{len(gap.parameters)}",
            _number(gap.agreement.error, ".1e"),
            _number(gap.agreement.cosine, ".6f"),
            _number(gap.agreement.ratio, ".6g"),
            _verdict(gap, tolerance),
        )
        for gap in variant.terms
    ]


def _verdict(gap: TermGap, tolerance: float) -> str:
    if gap.lost:
        return f"{len(gap.lost)} lost"
    return "" if gap.agreement.within(tolerance) else "differs"


def _values(report: CompileReport) -> tuple[Table, ...]:
    rows = tuple(
        (
            variant.name,
            f"{gap.kind} {gap.name}".strip(),
            _number(gap.agreement.error, ".1e"),
            _number(gap.agreement.cosine, ".6f"),
            _number(gap.agreement.ratio, ".6g"),
            gap.meaning,
        )
        for variant in report.variants
        for gap in variant.wrong_values(report.tolerance)
    )
    columns = ("variant", "value", "error", "cosine", "ratio", "the factor is")
    return (Table("predictions, losses and metrics that differ", columns, rows),) if rows else ()


def _parameters(report: CompileReport) -> tuple[Table, ...]:
    rows: list[tuple[str, ...]] = []
    for variant in report.variants:
        for gap in variant.wrong_terms(report.tolerance):
            wrong = set(gap.differing(report.tolerance))
            rows += [
                (
                    variant.name,
                    gap.term,
                    p.name,
                    _reach(p.reference),
                    _reach(p.variant),
                    _number(p.error, ".1e"),
                )
                for p in gap.parameters
                if p.name in wrong
            ]
    if not rows:
        return ()
    left_out = len(rows) - MOST_PARAMETERS
    notes = (f"and {left_out} more",) if left_out > 0 else ()
    columns = ("variant", "term", "parameter", "eager", "variant", "error")
    return (Table("parameters whose gradient differs", columns, tuple(rows[:MOST_PARAMETERS]), notes),)


def _trials(report: CompileReport) -> tuple[Table, ...]:
    rows = tuple(
        (variant.name, trial.what, "yes" if trial.cured else "no", trial.error or trial.detail)
        for variant in report.variants
        for trial in variant.trials
    )
    columns = ("variant", "changed", "explains it", "")
    return (Table("one thing changed at a time", columns, rows),) if rows else ()


def _reach(reach: Reach) -> str:
    return {Reach.VALUE: "gradient", Reach.ZERO: "zero", Reach.NONE: "none"}[reach]


def _number(value: float, form: str) -> str:
    return "" if math.isnan(value) else f"{value:{form}}"
