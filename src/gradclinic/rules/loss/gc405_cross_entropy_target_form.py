"""The target of a cross-entropy has the wrong form.

## What it finds
Class indices outside the number of classes (labels that start at 1, an id that is not a class), a
one-hot or column-shaped target where indices are expected, indices given as floats, scores with
the class axis in the wrong place.

## Why it hurts
Most of these raise an error whose text names neither the label nor the remedy; on a GPU an index
out of range is a device-side assert that surfaces lines later and poisons the process.

## What to do
Indices: integer tensor, one axis fewer than the scores, values from 0 to C-1; `ignore_index` for
what must not count. Probabilities: float tensor of the scores' own shape. Scores carry the
classes on axis 1: (N, C, …).

## Not the fix
Adding an output for the stray label: every other label stays one class off.

## Known limits
A target that fits by shape and range but is shifted by one within it cannot be seen here.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import Crash, CrashKind, LossCall, Source
from gradclinic.findings import Finding, Severity
from gradclinic.rules._rule import Rule

rule = Rule(
    "GC405",
    "cross-entropy-target-form",
    Severity.ERROR,
    since="0.1.0",
    sources=(Source.RUNTIME,),
    topic="loss and its target",
)

BAD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(20):
    x = torch.randn(32, 4)
    y = x[:, :3].argmax(1) + 1
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
"""

GOOD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(20):
    x = torch.randn(32, 4)
    y = x[:, :3].argmax(1)
    y[0] = -100
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
"""

GOOD_SOFT_LABELS = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(20):
    x = torch.randn(32, 4)
    y = (5 * x[:, :3]).softmax(1)
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
"""


@rule.check
def target_does_not_fit(call: LossCall) -> Iterator[Finding]:
    if call.loss not in ("cross_entropy", "nll_loss") or not call.input_shape or call.target_shape is None:
        return
    problem = _problem(call)
    if problem is None:
        return
    message, fix = problem
    yield rule.finding(
        message,
        call.where,
        evidence={
            "scores": f"shape {_shape(call.input_shape)}",
            "target": f"shape {_shape(call.target_shape)}, {'float' if call.target_is_float else 'integer'}"
            + (f", values {call.target_range[0]:g} to {call.target_range[1]:g}" if call.target_range else ""),
        },
        fix=fix,
        confidence=0.97,
    )


def _problem(call: LossCall) -> tuple[str, str] | None:
    scores, target = call.input_shape or (), call.target_shape or ()
    classes = scores[1] if len(scores) > 1 else scores[0]
    if call.target_is_float:
        if target == scores:
            return None
        return (
            "the target is a float tensor of another shape than the scores",
            "pass class indices: target.long()",
        )
    indices = (scores[0], *scores[2:]) if len(scores) > 1 else ()
    if target != indices:
        if target == (*indices, 1):
            return "the target has an axis too many", "remove it: target.squeeze(-1)"
        if target == scores:
            return (
                "the target is one-hot integers where class indices are expected",
                "pass target.argmax(1), or floats",
            )
        if len(scores) > 2 and target == scores[:-1]:
            return (
                f"the classes are on the last axis of the scores; the loss reads axis 1 ({scores[1]})",
                "move them: scores.transpose(1, -1), or flatten both to (N, C) and (N,)",
            )
        return None
    if call.target_range is None:
        return None
    low, high = call.target_range
    if low >= 0 and high < classes:
        return None
    if low == 1 and high == classes:
        return (
            f"labels run from 1 to {classes:d}, the {classes:d} classes are numbered from 0",
            "subtract 1 from the labels",
        )
    wrong = high if high >= classes else low
    return (
        f"label {wrong:g} is outside the {classes:d} classes of the scores (0 to {classes - 1:d})",
        "map the labels to 0..C-1, or give the model as many outputs as there are classes",
    )


def _shape(shape: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


@rule.check
def target_raised(crash: Crash) -> Iterator[Finding]:
    if crash.kind is not CrashKind.TARGET:
        return
    label = f"label {crash.names[0]} is no class of the scores" if crash.names else "the target does not fit"
    yield rule.finding(
        f"{label}: the loss could not be computed",
        crash.where,
        evidence={"error": crash.message},
        fix="labels are integers from 0 to C-1, one per row of scores: subtract 1 if they start at 1, "
        "set ignore_index for those that must not count",
        confidence=0.97,
    )
