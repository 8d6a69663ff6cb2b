"""A trainable parameter never receives a gradient: nothing connects it to the loss.

## What it finds
Parameters that require a gradient and that an optimizer steps, but that no backward of the run
gives one. Either their layer never runs, or it runs and what it computes is dropped or cut off.

## Why it hurts
The optimizer skips a parameter without a gradient. That part of the model stays at its initial
values while the rest learns around it; the loss falls, only less far than it should.

## What to do
Use the layer's output in what the loss is computed from. Common causes: a loop that feeds every
layer the same input so that only the last one counts, a `detach()` or `no_grad` block in the
forward, a branch that is computed and not added, a layer that the forward forgot.

## Not the fix
`find_unused_parameters=True` or `allow_unused=True`: both only hide the error that told of it.

## Known limits
One of several alike in a list or dict that did not run while others learn is left alone: experts
and dropped layers look like that, unless one of them ran in the place of all. So is a bias whose own
weight learns: a loss of derivatives alone does not depend on it.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import Census, CutKind, CutRole, Location, Parameter, Source
from gradclinic.facts.flow import GradientFlow
from gradclinic.facts.reach import GradientReach
from gradclinic.findings import Finding, Severity
from gradclinic.rules._naming import counted, listed, modules_of
from gradclinic.rules._owners import ENOUGH_STEPS, has_twin, twins
from gradclinic.rules._rule import Rule
from gradclinic.rules.graph._places import by_place

rule = Rule(
    "GC205",
    "parameter-unreached",
    Severity.ERROR,
    since="0.1.0",
    sources=(Source.RUNTIME, Source.PROBE),
    topic="parameters and the loss",
    explains=("GC612",),
    subsumes=("GC104", "GC105"),
)

BAD = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
        self.head = nn.Linear(4, 1)

    def forward(self, x):
        for layer in self.layers:
            h = torch.relu(layer(x))
        return self.head(h)


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(20):
    x = torch.randn(32, 4)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
"""

GOOD = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
        self.head = nn.Linear(4, 1)

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return self.head(x)


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(20):
    x = torch.randn(32, 4)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
"""

BAD_SAME_INDEX = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
        self.gates = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
        self.head = nn.Linear(4, 1)

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            x = x + torch.relu(layer(x)) * self.gates[0](x)
        return self.head(x)


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(20):
    x = torch.randn(32, 4)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
"""

GOOD_EXPERTS = """
import torch
from torch import nn


class Mixture(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(4, 6)
        self.experts = nn.ModuleList(nn.Linear(4, 1) for _ in range(6))

    def forward(self, x):
        weights = self.gate(x).softmax(-1)
        out = torch.zeros(len(x), 1)
        for i in (0, 1):
            out = out + weights[:, i : i + 1] * self.experts[i](x)
        return out


torch.manual_seed(0)
model = Mixture()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(20):
    x = torch.randn(32, 4)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
"""

LEFT_OVER = frozenset({"aux", "auxiliary", "head", "fc", "classifier", "pooler", "logits", "unused", "extra"})
TOLD_BY_OTHERS = frozenset({CutKind.TENSOR, CutKind.NUMPY, CutKind.GRAD, CutKind.CHECKPOINT})


@rule.check
def never_given_a_gradient(census: Census) -> Iterator[Finding]:
    lost = [p for p in census.parameters if _lost(p, census)]
    idle = {p.name: holder for p in lost if (holder := _idle_holder(p, census))}
    groups = [([p for p in lost if idle.get(p.name) == id], id) for id in dict.fromkeys(idle.values())]
    groups += [([p for p in lost if p.name not in idle and p.ran is ran], "") for ran in (True, False)]
    for group, optimizer in groups:
        if not group:
            continue
        ran = bool(optimizer) or group[0].ran
        first = next((p for p in group if p.cut), group[0])
        at = first.cut.where if first.cut else None
        how = "runs, but what it computes does not reach the loss" if ran else "never runs"
        names = modules_of(group)
        yield rule.finding(
            f"{listed(names, most=2)} {'(together) ' if len(names) > 1 else ''}{how}",
            at or first.built,
            evidence={
                **({"cut off by": f"{first.cut.kind} at {at}"} if first.cut and at else {}),
                "without a gradient": listed(p.name for p in group),
                "optimizer steps": first.updates,
                "of the trainable parameters": f"{len(group)} of "
                + counted(sum(1 for p in census.parameters if p.trainable and p.holders), "tensor"),
            },
            fix="use its output in the loss, or remove it from the model"
            if ran
            else "call it in forward, or remove it",
            confidence=0.93 if ran else 0.8,
            severity=None if ran else _severity_of_unused(group),
            subject=optimizer or first.name,
        )


@rule.check
def not_connected(reach: GradientReach) -> Iterator[Finding]:
    yield from _unreached(
        {p.name: p.where for p in reach.parameters if p.unreached}, [p.name for p in reach.parameters]
    )


@rule.check
def reached_by_no_term(flow: GradientFlow) -> Iterator[Finding]:
    yield from _unreached({name: flow.places.get(name) for name in flow.unreached}, list(flow.parameters))


def _unreached(lost: dict[str, Location | None], every: list[str]) -> Iterator[Finding]:
    """One finding for each forward that holds parameters which an experiment saw unconnected."""
    kept = {name: where for name, where in lost.items() if not _bias_of_learner(name, lost, every)}
    for where, names in by_place(kept):
        yield rule.finding(
            f"the loss does not reach {listed(names)}",
            where,
            evidence={"connected": f"{len(every) - len(lost)} of {len(every)} trainable parameters"},
            fix="use its output in the loss, or set requires_grad_(False) if it is not meant to train",
            confidence=0.95,
            subject=names[0],
        )


def _severity_of_unused(group: list[Parameter]) -> Severity:
    """A head that is not called may be left over from another use of the model."""
    parts = {part.lower() for name in modules_of(group) for part in name.rpartition(".")[2].split("_")}
    return Severity.INFO if parts & LEFT_OVER else Severity.WARNING


def _idle_holder(p: Parameter, census: Census) -> str:
    """The optimizer of a parameter that was seen to be cut off, when all it holds was, while others train."""
    if not p.cut or p.cut.role is not CutRole.PATH or not any(other.reached for other in census.parameters):
        return ""
    for id in p.holders:
        held = [other for other in census.parameters if id in other.holders and other.trainable]
        if not any(other.reached for other in held) and any(other.cut for other in held):
            return id
    return ""


def _bias_of_learner(name: str, lost: dict[str, Location | None], every: list[str]) -> bool:
    module, _, leaf = name.rpartition(".")
    return leaf == "bias" and f"{module}.weight" in every and f"{module}.weight" not in lost


def _lost(p: Parameter, census: Census) -> bool:
    if p.reached or not (p.trainable and p.holders and p.registered) or p.updates < ENOUGH_STEPS:
        return False
    if p.cut and (p.cut.role is not CutRole.PATH or p.cut.kind in TOLD_BY_OTHERS):
        return False
    if not any(set(other.holders) & set(p.holders) and other.reached for other in census.parameters):
        return bool(_idle_holder(p, census))
    module, _, leaf = p.name.rpartition(".")
    if leaf == "bias" and any(o.name == f"{module}.weight" and o.reached for o in census.parameters):
        return False
    return p.ran or not has_twin(p, census, lambda other: other.reached) or _one_runs_for_all(p, census)


def _one_runs_for_all(p: Parameter, census: Census) -> bool:
    """A loop over a list that takes the same entry each time: it runs as often as there are entries."""
    alike = twins(p, census)
    running = [other for other in alike if other.ran]
    return len(running) == 1 and running[0].reached and running[0].runs == len(alike)
