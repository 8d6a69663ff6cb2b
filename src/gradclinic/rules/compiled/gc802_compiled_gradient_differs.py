"""Eager and compiled both give a gradient, and the two differ beyond precision.

## What it finds
A loss term whose gradient in a traced or compiled variant is not the one of eager: relative error,
cosine and norm ratio over all parameters, in float64 where the model allows it. Or predictions,
losses and metrics that differ. More precise rules take precedence where the cause could be told.

## Why it hurts
The run trains, the counts of parameters with gradient are complete, and it converges to something
else, or slower. A gradient that is 20 % off looks healthy in every plot.

## What to do
The first parameter named is where to look: compare the variant's operations from there to the output
with eager's. Custom `autograd.Function`s lose their own backward when traced.

## Not the fix
A looser tolerance: rounding in float64 is a million times smaller than what is reported here.

## Known limits
Where the model cannot run in float64 the comparison is made in its own precision, and errors below
one in a thousand pass.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import Source
from gradclinic.facts.variants import CompileReport
from gradclinic.findings import Finding, Severity
from gradclinic.rules._rule import Rule
from gradclinic.rules.compiled._variants import TOPIC, first_parameter, seen, unexplained

rule = Rule(
    "GC802",
    "compiled-gradient-differs",
    Severity.ERROR,
    since="0.1.0",
    sources=(Source.PROBE,),
    topic=TOPIC,
)

BAD = """
import torch
from torch import nn

from gradclinic import Case


class Clamp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clamp(-1, 1)

    @staticmethod
    def backward(ctx, grad):
        return grad


def make():
    x = torch.randn(50, 3, dtype=torch.float64)
    return Case(
        nn.Linear(3, 2).double(),
        x,
        lambda out, x: (out.clamp(-1, 1) - 0.5).square().mean(),
        forward=lambda model, x: model(x).clamp(-1, 1),
        variants={"ours": lambda model: lambda x: Clamp.apply(model(x))},
    )
"""

GOOD = """
import torch
from torch import nn

from gradclinic import Case


def make():
    x = torch.randn(50, 3, dtype=torch.float64)
    return Case(
        nn.Linear(3, 2).double(),
        x,
        lambda out, x: (out - 0.5).square().mean(),
        forward=lambda model, x: model(x).clamp(-1, 1),
        variants={"ours": lambda model: lambda x: model(x).clamp(max=1).clamp(min=-1)},
    )
"""


@rule.check
def differs(report: CompileReport) -> Iterator[Finding]:
    for variant in unexplained(report):
        evidence = seen(report, variant)
        gaps = variant.wrong_terms(report.tolerance)
        if variant.error:
            message = f"{variant.name!r} raises where eager trains"
        elif gaps:
            worst = max(gaps, key=lambda gap: gap.agreement.error)
            layer = first_parameter(report, variant)
            message = (
                f"in {variant.name!r} the gradient of {worst.term!r} is off by {worst.agreement.error:.2g} "
                f"of its norm, first at {layer}"
            )
        else:
            names = ", ".join(f"{gap.kind} {gap.name}" for gap in variant.wrong_values(report.tolerance)[:3])
            message = f"{variant.name!r} does not compute what eager does: {names}"
        yield rule.finding(
            message,
            variant.where,
            evidence=evidence,
            fix="compile with gradclinic.verified_compile, which hands out nothing that differs from eager",
            confidence=0.9,
            subject=variant.name,
        )
