"""A value of the variant is eager's times one constant factor.

## What it finds
A prediction, a loss term or a metric that points in eager's direction to rounding and has another
length. The factor is looked up among the sizes of the batch: the number of atoms, tokens, samples.

## Why it hurts
One side divides by a size and the other does not. Gradients and metrics are off by that factor, which
changes from batch to batch; numbers reported by the two cannot be compared.

## What to do
Decide which side is meant, and normalise in one function that both call.

## Not the fix
Scaling the learning rate or the loss weight by the factor: it holds for one size only.

## Known limits
Of a single number any ratio is constant: it is reported only when the factor is a known size.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import Source
from gradclinic.facts.variants import CompileReport
from gradclinic.findings import Finding, Severity
from gradclinic.rules._rule import Rule
from gradclinic.rules.compiled._variants import TOPIC, seen, unexplained

rule = Rule(
    "GC806",
    "normalisation-differs",
    Severity.WARNING,
    since="0.1.0",
    sources=(Source.PROBE,),
    topic=TOPIC,
    subsumes=("GC802",),
)

BAD = """
import torch
from torch import nn

from gradclinic import Case


def summed(model, x):
    return model(x).sum(0)


def ours(model):
    return lambda x: model(x) / x.shape[0]


def make():
    x = torch.randn(6, 3, dtype=torch.float64)
    loss = {"total": lambda out, x: (out - 1).square().mean()}
    return Case(nn.Linear(3, 2).double(), x, terms=loss, forward=summed, variants={"ours": ours})
"""

GOOD = """
import torch
from torch import nn

from gradclinic import Case


def summed(model, x):
    return model(x).sum(0)


def ours(model):
    return lambda x: torch.cat([model(x[:2]), model(x[2:])])


def make():
    x = torch.randn(6, 3, dtype=torch.float64)
    loss = {"total": lambda out, x: (out - 1).square().mean()}
    return Case(nn.Linear(3, 2).double(), x, terms=loss, forward=summed, variants={"ours": ours})
"""


@rule.check
def scaled(report: CompileReport) -> Iterator[Finding]:
    for variant in unexplained(report):
        gaps = [gap for gap in variant.wrong_values(report.tolerance) if gap.only_scaled]
        if not gaps:
            continue
        gap = max(gaps, key=lambda gap: (bool(gap.meaning), gap.size))
        ratio = gap.agreement.ratio
        times = f"{ratio:.6g} times" if ratio >= 1 else f"1/{1 / ratio:.6g} of"
        because = f" ({gap.meaning})" if gap.meaning else ""
        yield rule.finding(
            f"{gap.kind} {gap.name} of {variant.name!r} is {times} eager's{because}",
            variant.where,
            evidence=seen(report, variant) | {"cosine": f"{gap.agreement.cosine:.9f}"},
            fix="normalise in one function that both variants call",
            confidence=0.95 if gap.meaning else 0.8,
            subject=variant.name,
        )
