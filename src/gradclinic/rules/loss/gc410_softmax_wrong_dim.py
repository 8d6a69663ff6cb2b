"""A softmax normalises over the wrong axis.

## What it finds
A softmax over the batch in front of the loss, or over time in front of CTC, an attention softmax over
another axis than the one its weights are summed over, and a softmax without an axis, where torch
chooses one.

## Why it hurts
Over the batch, one sample's probabilities depend on the others in its batch: the model learns
from comparisons that do not exist when it is used. Over the wrong axis of attention scores the
weights of a query do not sum to one.

## What to do
Name the axis that holds the alternatives: `dim=-1` for scores of shape (N, C) and for attention
scores of shape (…, queries, keys).

## Not the fix
A larger batch, which only changes what the samples are compared with.

## Known limits
An implicit axis that happens to be the right one is reported as advice.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import LossCall, Op, SoftmaxUse, Source
from gradclinic.findings import Finding, Severity
from gradclinic.rules._rule import Rule

rule = Rule(
    "GC410",
    "softmax-wrong-dim",
    Severity.ERROR,
    since="0.1.0",
    sources=(Source.STATIC, Source.RUNTIME),
    topic="loss and its input",
    explains=("GC612", "GC412", "GC206"),
)

BAD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3), nn.LogSoftmax(dim=0))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(20):
    x = torch.randn(32, 4)
    y = x[:, :3].argmax(1)
    optimizer.zero_grad()
    loss = nn.functional.nll_loss(model(x), y)
    loss.backward()
    optimizer.step()
"""

BAD_ATTENTION = """
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key, self.value = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)
        self.head = nn.Linear(8, 1)

    def forward(self, x):
        scores = self.query(x) @ self.key(x).transpose(1, 2) / 8**0.5
        return self.head((scores.softmax(dim=1) @ self.value(x)).mean(1))


torch.manual_seed(0)
model = Attention()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(20):
    x = torch.randn(32, 5, 8)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.mean((1, 2)).unsqueeze(1))
    loss.backward()
    optimizer.step()
"""

GOOD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3), nn.LogSoftmax(dim=1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(20):
    x = torch.randn(32, 4)
    y = x[:, :3].argmax(1)
    optimizer.zero_grad()
    loss = nn.functional.nll_loss(model(x), y)
    loss.backward()
    optimizer.step()
"""

GOOD_BOTH_WAYS = """
import torch
from torch import nn

torch.manual_seed(0)
left, right = nn.Linear(4, 8), nn.Linear(4, 8)
optimizer = torch.optim.SGD([*left.parameters(), *right.parameters()], lr=0.05)
for step in range(20):
    x = torch.randn(16, 4)
    scores = left(x) @ right(x + 0.1 * torch.randn(16, 4)).T
    pairs = torch.arange(16)
    optimizer.zero_grad()
    loss = -(scores.log_softmax(0)[pairs, pairs] + scores.log_softmax(1)[pairs, pairs]).mean()
    loss.backward()
    optimizer.step()
"""

SCORES = frozenset({"linear", "relu", "dropout", "batch_norm"})


@rule.check
def normalised_over_another_axis(call: LossCall) -> Iterator[Finding]:
    last = call.last_op
    if last is not None and last.name in ("softmax", "log_softmax"):
        yield from _over_the_labels(call, last) if call.loss == "ctc_loss" else _over_the_batch(call, last)


def _over_the_batch(call: LossCall, last: Op) -> Iterator[Finding]:
    if call.loss not in ("nll_loss", "cross_entropy", "mse_loss", "l1_loss") or not _has_classes(call, last):
        return
    over_batch = last.dim == 0
    if not over_batch and not last.implicit_dim:
        return
    yield rule.finding(
        f"{last.name} normalises over the batch: {_chosen(last)}"
        if over_batch
        else f"{last.name} is given no axis; torch chose {'one' if last.dim is None else last.dim}",
        last.where or call.where,
        evidence={**_layout(last), "loss": f"{call.loss} at {call.where}"},
        fix=f"{last.name}(dim=1), the axis of the classes",
        confidence=0.95 if over_batch else 0.6,
        severity=None if over_batch else Severity.INFO,
    )


def _over_the_labels(call: LossCall, last: Op) -> Iterator[Finding]:
    """CTC reads (time, batch, labels); the axis that was normalised must be as long as that of the labels."""
    if not call.input_shape or not last.shape or last.dim is None:
        return
    if last.shape[last.dim] != call.input_shape[-1]:
        yield rule.finding(
            f"{last.name} normalises {_axis(last)}, and CTC reads {call.input_shape[-1]} labels on its last",
            last.where or call.where,
            evidence={**_layout(last), "loss": f"{call.loss} at {call.where}"},
            fix=f"{last.name}(dim=-1), the axis of the labels",
            confidence=0.95,
        )


@rule.check
def summed_over_another_axis(use: SoftmaxUse) -> Iterator[Finding]:
    yield rule.finding(
        f"softmax normalises {_axis(use.softmax)}, and the product sums over another",
        use.softmax.where,
        evidence={**_layout(use.softmax), "used in a product": str(use.used)},
        fix="normalise over the axis that the product sums over (softmax(dim=-1) for queries by keys): "
        "there the weights must sum to one",
        confidence=0.92,
    )


def _has_classes(call: LossCall, last: Op) -> bool:
    """Whether its input has an axis of samples and another of classes.

    In source, scores straight from a layer do; a square of similarities may be normalised either way.
    """
    if last.shape is None:
        return len(call.made_by) > 1 and call.made_by[1].name in SCORES
    return len(last.shape) >= 2 and last.dim is not None and (last.dim != 0 or last.shape[0] != last.shape[1])


def _layout(op: Op) -> dict[str, object]:
    return {"shape": op.shape, "axis": op.dim} if op.shape is not None else {"axis": op.dim}


def _axis(op: Op) -> str:
    return f"axis {op.dim} of {op.shape}" if op.shape is not None else f"axis {op.dim}"


def _chosen(op: Op) -> str:
    return f"no axis was given and torch chose {op.dim}" if op.implicit_dim else _axis(op)
