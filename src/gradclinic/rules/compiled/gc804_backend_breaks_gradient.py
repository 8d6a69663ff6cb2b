"""The traced function trains right, and one compiler backend makes it wrong.

## What it finds
A variant whose gradients differ from eager, or which raises, with its backend of `torch.compile`, and
which is right when `torch.compile` is left out. The backends of torch that do it right are listed.

## Why it hurts
The fault is in no line of the model. It comes and goes with the backend, its version and its options.

## What to do
Use a backend that is listed as right, and report the other to its authors with this case. Keep a
regression test: `gradclinic probe compile TARGET --write-test tests/test_gradients.py`.

## Not the fix
Changing the model until the numbers agree: the next version of the backend will differ again.

## Known limits
Only whole backends are told apart, not the passes inside one.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import Source
from gradclinic.facts.variants import CompileReport, TrialKind
from gradclinic.findings import Finding, Severity
from gradclinic.rules._rule import Rule
from gradclinic.rules.compiled._variants import TOPIC, cured, seen

rule = Rule(
    "GC804",
    "backend-breaks-gradient",
    Severity.ERROR,
    since="0.1.0",
    sources=(Source.PROBE,),
    topic=TOPIC,
)

BAD = """
import torch
from torch import nn

from gradclinic import Case


def careless(graph, inputs):
    return torch.no_grad()(graph.forward)


def make():
    x = torch.randn(5, 3, dtype=torch.float64)
    return Case(
        nn.Linear(3, 2).double(),
        x,
        lambda out, x: out.square().mean(),
        variants={"ours": lambda model: torch.compile(model, backend=careless)},
    )
"""

GOOD = """
import torch
from torch import nn

from gradclinic import Case


def make():
    x = torch.randn(5, 3, dtype=torch.float64)
    return Case(
        nn.Linear(3, 2).double(),
        x,
        lambda out, x: out.square().mean(),
        variants={"ours": lambda model: torch.compile(model, backend="aot_eager")},
    )
"""


@rule.check
def one_backend(report: CompileReport) -> Iterator[Finding]:
    for variant, bare in cured(report, TrialKind.NO_BACKEND):
        right = [t.what for t in variant.trials if t.kind is TrialKind.BACKEND and t.cured]
        wrong = [t.what for t in variant.trials if t.kind is TrialKind.BACKEND and not t.cured]
        others = f"; right with {', '.join(right)}" if right else ""
        also = f"; wrong with {', '.join(wrong)} too" if wrong else ""
        breaks = "raises with" if variant.error else "loses its gradients through"
        yield rule.finding(
            f"{variant.name!r} {breaks} the backend {variant.backend}; without torch.compile it is right",
            bare.where,
            evidence=seen(report, variant) | {"backends": f"wrong with {variant.backend}{also}{others}"},
            fix=f"compile with {right[-1]}"
            if right
            else "leave torch.compile out, or use gradclinic.verified_compile",
            confidence=0.95,
            subject=variant.name,
        )
