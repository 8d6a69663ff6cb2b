"""What rules about compiled variants have in common: which are judged, and how they show them."""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts.variants import CompileReport, Trial, TrialKind, VariantReport

TOPIC = "compiled gradients"


def judged(report: CompileReport) -> Iterator[VariantReport]:
    """Wrong variants that the user runs, or would: the case's own, and torch.compile's."""
    for variant in report.wrong():
        if variant.own or (variant.name == "torch.compile" and not variant.error):
            yield variant


def unexplained(report: CompileReport) -> Iterator[VariantReport]:
    """Those of which no trial told the cause."""
    return (variant for variant in judged(report) if not any(trial.cured for trial in variant.trials))


def cured(report: CompileReport, kind: TrialKind) -> Iterator[tuple[VariantReport, Trial]]:
    for variant in judged(report):
        trial = variant.trial(kind)
        if trial is not None:
            yield variant, trial


def seen(report: CompileReport, variant: VariantReport) -> dict[str, object]:
    """The numbers behind a finding, the worst of each kind."""
    if variant.error:
        return {"it raises": variant.error}
    shown: dict[str, object] = {}
    for gap in variant.wrong_terms(report.tolerance):
        counts = f"{gap.reached} of {gap.reached_in_reference} parameters, " if gap.lost else ""
        agreement = gap.agreement
        shown[f"gradient of {gap.term}"] = (
            f"{counts}relative error {agreement.error:.2g}, cosine {agreement.cosine:.4f}, "
            f"norm ratio {agreement.ratio:.4g}"
        )
    layer = first_parameter(report, variant)
    if layer:
        shown["first parameter that differs"] = layer
    wrong = variant.wrong_values(report.tolerance)
    if wrong:
        shown["values that differ"] = ", ".join(
            f"{gap.kind} {gap.name} by {gap.agreement.error:.2g}" for gap in wrong[:4]
        )
    return shown


def first_parameter(report: CompileReport, variant: VariantReport) -> str:
    for gap in variant.wrong_terms(report.tolerance):
        differing = gap.differing(report.tolerance)
        if differing:
            return differing[0]
    return ""
