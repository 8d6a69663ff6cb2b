"""A compiled graph is reused for a model that differs in what was baked into it.

## What it finds
A variant whose traced graph holds numbers or tensors of another model (a cut-off, a mask, a bias, per-type
statistics), and which is right again when this model's own are put in their place.

## Why it hurts
The task whose model was traced is always right, so a test on the first task passes. Every other task
trains with the first one's constants.

## What to do
Pass everything that differs between tasks as an input of the graph, and share a graph only between
models whose traced graphs are equal. `gradclinic.share_compiled` does both and proves each task.

## Not the fix
A key made of the identity of one shared parameter or module: models that share it still differ
in the rest.

## Known limits
Numbers are matched by source line and operation; a graph of other code than the model's is not.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import Source
from gradclinic.facts.variants import CompileReport, TrialKind
from gradclinic.findings import Finding, Severity
from gradclinic.rules._rule import Rule
from gradclinic.rules.compiled._variants import TOPIC, cured, seen

rule = Rule(
    "GC808",
    "shared-graph-not-equivalent",
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


class Task(nn.Module):
    def __init__(self, cutoff):
        super().__init__()
        self.net = nn.Linear(3, 2).double()
        self.cutoff = cutoff
        self.register_buffer("bias", torch.randn(2, dtype=torch.float64))

    def forward(self, x):
        return self.net(x / self.cutoff) + self.bias


X = torch.randn(5, 3, dtype=torch.float64)


def graph_of(traced):
    def lifted(weight, x):
        return torch.func.functional_call(traced, {"net.weight": weight, "net.bias": traced.net.bias}, (x,))

    return make_fx(lifted)(traced.net.weight, X)


def make():
    water, ice = Task(2.0), Task(1.0)
    ice.net.bias, ice.bias = water.net.bias, water.bias

    def ours(model):
        graph = graph_of(water)
        return lambda x: graph(model.net.weight, x)

    return Case(ice, X, terms={"energy": lambda out, x: out.square().mean()}, variants={"ours": ours})
"""

BAD_BUFFER = """
import torch
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx

from gradclinic import Case


class Task(nn.Module):
    def __init__(self, cutoff):
        super().__init__()
        self.net = nn.Linear(3, 2).double()
        self.cutoff = cutoff
        self.register_buffer("bias", torch.randn(2, dtype=torch.float64))

    def forward(self, x):
        return self.net(x / self.cutoff) + self.bias


X = torch.randn(5, 3, dtype=torch.float64)


def graph_of(traced):
    def lifted(weight, x):
        return torch.func.functional_call(traced, {"net.weight": weight, "net.bias": traced.net.bias}, (x,))

    return make_fx(lifted)(traced.net.weight, X)


def make():
    water, ice = Task(1.0), Task(1.0)
    ice.net.bias = water.net.bias

    def ours(model):
        graph = graph_of(water)
        return lambda x: graph(model.net.weight, x)

    return Case(ice, X, terms={"energy": lambda out, x: out.square().mean()}, variants={"ours": ours})
"""

GOOD = """
import torch
from torch import nn

from gradclinic import Case, share_compiled


class Task(nn.Module):
    def __init__(self, cutoff):
        super().__init__()
        self.net = nn.Linear(3, 2).double()
        self.cutoff = cutoff
        self.register_buffer("bias", torch.randn(2, dtype=torch.float64))

    def forward(self, x):
        return self.net(x / self.cutoff) + self.bias


X = torch.randn(5, 3, dtype=torch.float64)


def make():
    water, ice = Task(2.0), Task(1.0)

    def ours(model):
        return share_compiled({"water": water, "ice": model}, (X,), backend="none")["ice"]

    return Case(ice, X, terms={"energy": lambda out, x: out.square().mean()}, variants={"ours": ours})
"""


@rule.check
def foreign_constants(report: CompileReport) -> Iterator[Finding]:
    for variant, trial in cured(report, TrialKind.CONSTANTS):
        yield rule.finding(
            f"the graph of {variant.name!r} holds constants of the model it was traced from: {trial.detail}",
            trial.where,
            evidence=seen(report, variant),
            fix="pass it as an input of the graph, or share through gradclinic.share_compiled",
            confidence=0.97,
            subject=variant.name,
        )
