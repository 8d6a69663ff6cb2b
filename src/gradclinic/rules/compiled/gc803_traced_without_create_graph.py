"""The model was traced in eval mode, so a gradient inside it was recorded as a constant.

## What it finds
A variant made with `make_fx` whose gradients are lost or wrong, and right again when the model is in
train mode while it is traced.

## Why it hurts
`autograd.grad(…, create_graph=self.training)` without graph gives forces that depend on no
parameter. The recorded graph repeats that for ever: the force loss is computed, shown, and trains
nothing, although the model is in train mode when the graph is used.

## What to do
Call `model.train()` before tracing, and restore the mode after.

## Not the fix
`model.train()` before the training loop: the graph keeps the mode it was traced in.

## Known limits
Told apart by making the variant again; a graph that was traced before the case was made cannot be.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import Source
from gradclinic.facts.variants import CompileReport, TrialKind
from gradclinic.findings import Finding, Severity
from gradclinic.rules._rule import Rule
from gradclinic.rules.compiled._variants import TOPIC, cured, seen

rule = Rule(
    "GC803",
    "traced-without-create-graph",
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
        self.net = nn.Linear(3, 8).double()

    def forward(self, x):
        (slope,) = torch.autograd.grad(self.net(x).square().sum(), x, create_graph=self.training)
        return -slope if self.training else -slope.detach()


X = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)


def ours(model):
    model.eval()
    graph = make_fx(lambda x: model(x))(X)
    model.train()
    return graph


def make():
    loss = {"force": lambda force, x: (force - 1).square().mean()}
    return Case(Force(), X, terms=loss, variants={"ours": ours})
"""

GOOD = """
import torch
from torch import nn

from gradclinic import Case, verified_compile


class Force(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(3, 8).double()

    def forward(self, x):
        (slope,) = torch.autograd.grad(self.net(x).square().sum(), x, create_graph=self.training)
        return -slope if self.training else -slope.detach()


X = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)


def ours(model):
    return verified_compile(model, (X,), backend="none")


def make():
    loss = {"force": lambda force, x: (force - 1).square().mean()}
    return Case(Force(), X, terms=loss, variants={"ours": ours})
"""


@rule.check
def traced_in_eval(report: CompileReport) -> Iterator[Finding]:
    for variant, trial in cured(report, TrialKind.TRAIN_MODE):
        yield rule.finding(
            f"{variant.name!r} is traced in eval mode, so the gradient taken inside the model is a constant",
            trial.where,
            evidence=seen(report, variant),
            fix="call model.train() before the trace, and restore the mode after it",
            confidence=0.98,
            subject=variant.name,
        )
