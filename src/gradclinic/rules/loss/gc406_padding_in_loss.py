"""Padded positions are averaged into the loss.

## What it finds
A cross-entropy over sequences whose rows end in one repeated value, in the target and at the same
places in the tokens the model read, with no `ignore_index` for that value.

## Why it hurts
The model is rewarded for predicting padding, which is easy and most of some batches: the loss
looks low, and real tokens get a smaller share of the gradient the shorter their sequence is.

## What to do
`cross_entropy(..., ignore_index=PAD)`, or fill padded targets with -100.

## Not the fix
Masking the input of the model only: the loss still counts the positions.

## Known limits
In a run, seen where targets are laid out in rows, or flattened from rows without a copy; in source,
where the same file pads them, by `pad_sequence` or by writing a constant to the end of each row. A
class weight for the padding is taken as a mask.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import LossCall, Source
from gradclinic.findings import Finding, Fix, Keyword, Severity
from gradclinic.rules._rule import Rule

rule = Rule(
    "GC406",
    "padding-in-loss",
    Severity.WARNING,
    since="0.1.0",
    sources=(Source.STATIC, Source.RUNTIME),
    topic="loss and its target",
)

BAD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Embedding(20, 16), nn.Linear(16, 20))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    tokens = torch.randint(1, 20, (8, 12))
    for row, length in enumerate(torch.randint(3, 13, (8,)).tolist()):
        tokens[row, length:] = 0
    inputs, targets = tokens[:, :-1], tokens[:, 1:]
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(inputs).transpose(1, 2), targets)
    loss.backward()
    optimizer.step()
"""

GOOD = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Embedding(20, 16), nn.Linear(16, 20))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    tokens = torch.randint(1, 20, (8, 12))
    for row, length in enumerate(torch.randint(3, 13, (8,)).tolist()):
        tokens[row, length:] = 0
    inputs, targets = tokens[:, :-1], tokens[:, 1:]
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(inputs).transpose(1, 2), targets, ignore_index=0)
    loss.backward()
    optimizer.step()
"""

GOOD_SPARSE_TAGS = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Embedding(20, 16), nn.Linear(16, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    tokens = torch.randint(0, 20, (8, 12))
    tags = (tokens > 15).long() + (tokens > 18).long()
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(tokens).transpose(1, 2), tags)
    loss.backward()
    optimizer.step()
"""

WORTH_SAYING = 0.1


@rule.check
def padding_counts(call: LossCall) -> Iterator[Finding]:
    share = call.padding_share
    if call.padding_value is None or call.reduction == "none" or not call.trains:
        return
    if share is None:
        yield rule.finding(
            f"the target is filled up with {call.padding_value}, and the padding counts in the loss",
            call.where,
            fix=Fix(
                f"pass ignore_index={call.padding_value}",
                changes=(
                    (Keyword(call.where, call.loss, "ignore_index", str(call.padding_value)),)
                    if isinstance(call.padding_value, int)
                    else ()  # A name may mean nothing where the loss is made.
                ),
            ),
            confidence=0.8,
        )
        return
    if share < WORTH_SAYING:
        return
    yield rule.finding(
        f"{share:.0%} of the target is padding (value {call.padding_value}) and counts in the loss",
        call.where,
        evidence={"padding": f"{share:.0%} of the first batch, value {call.padding_value}"},
        fix=f"pass ignore_index={call.padding_value}",
        confidence=0.9,
    )
