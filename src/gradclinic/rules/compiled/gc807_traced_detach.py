"""Tensors that autograd saved were recorded as constants, which cuts the second derivative.

## What it finds
A variant made with `make_fx` whose gradients are lost or wrong, and right again when the `detach`
operations that autograd itself left in the recorded graph are removed. A `detach()` of the user's
own is not counted among them and stays.

## Why it hurts
A model that takes a gradient inside (forces, penalties, residuals) saves tensors in its forward and
takes them back in the inner backward. Recorded, they come back detached. Predictions and losses are
those of eager, terms without inner gradient train right, and the force term's gradient is silently
wrong, by 17 % in one real case with every parameter still getting something.

## What to do
Compile with `gradclinic.verified_compile`, which reconnects them and proves the result; or remove
the pairs `detach(detach(x))` from the recorded graph before it is compiled.

## Not the fix
Another backend: the fault is in the graph they are all given. Removing every detach node: that also
removes the user's stop-gradients.

## Known limits
Told by making the variant again; a graph that was recorded before the case was made cannot be.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import Source
from gradclinic.facts.variants import CompileReport, TrialKind
from gradclinic.findings import Finding, Severity
from gradclinic.rules._rule import Rule
from gradclinic.rules.compiled._variants import TOPIC, cured, seen

rule = Rule(
    "GC807",
    "traced-detach",
    Severity.ERROR,
    since="0.1.0",
    sources=(Source.PROBE,),
    topic=TOPIC,
)

BAD = """
import torch
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx

from gradclinic import Case


class Force(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1)).double()

    def forward(self, x):
        (slope,) = torch.autograd.grad(self.net(x).sum(), x, create_graph=self.training)
        return -slope if self.training else -slope.detach()


X = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)


def make():
    loss = {"force": lambda force, x: (force - 1).square().mean()}
    return Case(Force(), X, terms=loss, variants={"ours": lambda model: make_fx(lambda x: model(x))(X)})
"""

GOOD = """
import torch
from torch import nn

from gradclinic import Case, verified_compile


class Force(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1)).double()

    def forward(self, x):
        (slope,) = torch.autograd.grad(self.net(x).sum(), x, create_graph=self.training)
        return -slope if self.training else -slope.detach()


X = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)


def ours(model):
    return verified_compile(model, (X,), backend="aot_eager")


def make():
    loss = {"force": lambda force, x: (force - 1).square().mean()}
    return Case(Force(), X, terms=loss, variants={"ours": ours})
"""


@rule.check
def saved_tensors_cut(report: CompileReport) -> Iterator[Finding]:
    for variant, trial in cured(report, TrialKind.SAVED_TENSORS):
        yield rule.finding(
            f"the graph of {variant.name!r} holds tensors that autograd saved as constants, "
            f"so gradients through the inner gradient are cut",
            trial.where,
            evidence=seen(report, variant) | {"in the graph": trial.detail},
            fix="compile with gradclinic.verified_compile, or drop detach(detach(x)) pairs from the graph",
            confidence=0.98,
            subject=variant.name,
        )
