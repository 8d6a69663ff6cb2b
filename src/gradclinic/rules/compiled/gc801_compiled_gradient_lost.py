"""A parameter trains in eager and gets nothing from a loss term in the compiled variant.

## What it finds
For one term of the loss, a parameter that gets a gradient in eager and none, or a zero, in a traced or
compiled variant of the same model. Where the cause could be tested it is named: coordinates that
enter the traced function without `requires_grad` make the inner gradient fail or vanish.

## Why it hurts
The parameter stands still under that term, or moves by the other terms only. The loss, the
predictions and the sum of all terms may look as in eager, so nothing else shows it.

## What to do
Look at the first parameter named and at the operations between it and the output in the variant. Let
inputs that the model differentiates by enter as `x.detach().requires_grad_(True)` inside the traced
function. `gradclinic.verified_compile` compiles with all gradients and refuses what it cannot prove.

## Not the fix
Counting parameters with a gradient under the whole loss: another term covers the hole. Raising the
weight of the term: nothing times a larger weight is nothing.

## Known limits
Says that the gradient is lost, and the reason only for what can be changed from outside: the entry
of the inputs. A zero gradient that is zero in eager too is not reported.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import Source
from gradclinic.facts.variants import CompileReport, TrialKind
from gradclinic.findings import Finding, Severity
from gradclinic.rules._rule import Rule
from gradclinic.rules.compiled._variants import TOPIC, cured, seen, unexplained

rule = Rule(
    "GC801",
    "compiled-gradient-lost",
    Severity.ERROR,
    since="0.1.0",
    sources=(Source.PROBE,),
    topic=TOPIC,
    subsumes=("GC802",),
)

BAD = """
import torch
from torch import nn

from gradclinic import Case


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(3, 4).double(), nn.Linear(4, 1).double()

    def forward(self, x):
        return self.head(torch.tanh(self.body(x)))


def ours(model):
    bias = model.body.bias.detach()
    return lambda x: model.head(torch.tanh(x @ model.body.weight.T + bias))


def make():
    x = torch.randn(5, 3, dtype=torch.float64)
    return Case(Net(), x, lambda out, x: out.square().mean(), variants={"ours": ours})
"""

BAD_ENTRY = """
import torch
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx

from gradclinic import Case


class Force(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(3, 4).double()

    def forward(self, x):
        if not x.requires_grad:
            return torch.zeros_like(x)
        (slope,) = torch.autograd.grad(self.net(x).square().sum(), x, create_graph=True)
        return -slope


X = torch.randn(5, 3, dtype=torch.float64)


def make():
    return Case(
        Force(),
        X,
        lambda force, x: (force - 1).square().mean(),
        forward=lambda model, x: model(x.detach().requires_grad_(True)),
        variants={"ours": lambda model: make_fx(lambda x: model(x))(X)},
    )
"""

GOOD = """
import torch
from torch import nn

from gradclinic import Case


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(3, 4).double(), nn.Linear(4, 1).double()

    def forward(self, x):
        return self.head(torch.tanh(self.body(x)))


def ours(model):
    return lambda x: model.head(torch.tanh(x @ model.body.weight.T + model.body.bias))


def make():
    x = torch.randn(5, 3, dtype=torch.float64)
    return Case(Net(), x, lambda out, x: out.square().mean(), variants={"ours": ours})
"""


@rule.check
def lost(report: CompileReport) -> Iterator[Finding]:
    for variant, trial in cured(report, TrialKind.ENTRY):
        yield rule.finding(
            f"{variant.name!r} takes a gradient by an input that enters the traced function without "
            f"requires_grad; with it every term matches eager",
            trial.where,
            evidence=seen(report, variant),
            fix="enter with x = x.detach().requires_grad_(True) inside the function that is traced",
            confidence=0.97,
            subject=variant.name,
        )
    for variant in unexplained(report):
        gaps = [gap for gap in variant.wrong_terms(report.tolerance) if gap.lost]
        if not gaps:
            continue
        gap = max(gaps, key=lambda gap: len(gap.lost))
        listed = ", ".join(gap.lost[:3]) + (", …" if len(gap.lost) > 3 else "")
        yield rule.finding(
            f"in {variant.name!r} the term {gap.term!r} gives no gradient to {listed}; in eager it does",
            variant.where,
            evidence=seen(report, variant),
            fix="compile with gradclinic.verified_compile, or find what cuts the path to the first",
            confidence=0.95,
            subject=variant.name,
        )
