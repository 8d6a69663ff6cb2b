"""One sample's output depends on the other samples of its batch.

## What it finds
Under `probe`: a model in which replacing the other samples of a batch changes the output of the one that
stayed, batch-norm in training mode aside.

In a run: a `view` that cuts samples apart, as `h_n.view(batch, -1)` does with the (directions, batch,
features) of a recurrent layer, and a recurrent or attention layer that takes samples for steps in time.

## Why it hurts
A sample's prediction then depends on its neighbours: the model learns from what will not be there
when it is used, and a different batch size gives different answers. It comes from a softmax or a
mean over dimension 0, a `view` that folds the batch into features, or a recurrent or attention
layer that takes the first dimension for time.

## What to do
Correct the dimension at the module that is named: `softmax(-1)`, `flatten(1)`, `permute` before
`view`, `batch_first=True`.

## Not the fix
A batch of one: it hides the mixing and trains on noise.

## Known limits
Under `probe`, samples must lie along one dimension of all tensors of the batch; graphs joined into one
big graph are not judged. A run is judged by shapes alone, where the loss has one target for each sample
and no other axis could be theirs.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import Source
from gradclinic.facts.samples import Independence, MovedSamples
from gradclinic.findings import Finding, Severity
from gradclinic.rules._rule import Rule

rule = Rule(
    "GC412",
    "samples-mixed",
    Severity.ERROR,
    since="0.1.0",
    sources=(Source.RUNTIME, Source.PROBE),
    topic="independence of samples",
    explains=("GC612",),
)

BAD = """
import torch
from torch import nn


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(4, 8, batch_first=True, bidirectional=True)
        self.head = nn.Linear(16, 3)

    def forward(self, x):
        last = self.gru(x)[1]
        return self.head(last.view(x.shape[0], -1))


torch.manual_seed(0)
model = Reader()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(20):
    x = torch.randn(32, 6, 4)
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), x[:, :, :3].sum(1).argmax(1))
    loss.backward()
    optimizer.step()
"""

BAD_TIME = """
import torch
from torch import nn

torch.manual_seed(0)
encoder = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0)
head = nn.Linear(8, 3)
optimizer = torch.optim.Adam([*encoder.parameters(), *head.parameters()], lr=1e-2)
for step in range(20):
    x = torch.randn(32, 6, 8)
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(head(encoder(x).mean(1)), x[:, :, :3].sum(1).argmax(1))
    loss.backward()
    optimizer.step()
"""

BAD_CASE = """
import torch
from torch import nn

from gradclinic import Case


class Mixing(nn.Module):
    def __init__(self):
        super().__init__()
        self.score, self.head = nn.Linear(4, 8), nn.Linear(8, 3)

    def forward(self, x):
        return self.head(self.score(x).softmax(0))


def make():
    torch.manual_seed(0)
    batch = torch.randn(16, 4), torch.randint(0, 3, (16,))
    return Case(Mixing(), batch, lambda out, batch: nn.functional.cross_entropy(out, batch[1]))
"""

GOOD = """
import torch
from torch import nn


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0)
        self.gru = nn.GRU(8, 8, bidirectional=True)
        self.head = nn.Linear(16, 3)

    def forward(self, x):
        last = self.gru(self.encoder(x.transpose(0, 1)))[1]
        return self.head(last.transpose(0, 1).reshape(x.shape[0], -1))


torch.manual_seed(0)
model = Reader()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(20):
    x = torch.randn(32, 6, 8)
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), x[:, :, :3].sum(1).argmax(1))
    loss.backward()
    optimizer.step()
"""

GOOD_CASE = """
import torch
from torch import nn

from gradclinic import Case


def make():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))
    batch = torch.randn(16, 4), torch.randint(0, 3, (16,))
    return Case(model, batch, lambda out, batch: nn.functional.cross_entropy(out, batch[1]))
"""


@rule.check
def depends_on_neighbours(seen: Independence) -> Iterator[Finding]:
    if not seen.mixed:
        return
    who = f"{seen.mixer} ({seen.mixer_type})" if seen.mixer else seen.mixer_type or "the case's forward"
    setting, fix = {}, "keep dimension 0 for the samples in this forward"
    if seen.batch_first is False:
        setting = {"its setting": "batch_first=False: it takes dimension 0 for time"}
        fix = "pass batch_first=True"
    yield rule.finding(
        f"a sample's output changes when only the other {seen.samples - 1} samples of its batch do",
        seen.where,
        evidence={
            "first mixed in": who,
            "change of the output": f"{seen.change:.2g} of its size",
            **setting,
        },
        fix=fix,
        confidence=0.97,
        subject=seen.mixer,
    )


@rule.check
def taken_for_another_axis(moved: MovedSamples) -> Iterator[Finding]:
    if moved.made is None:
        yield rule.finding(
            f"{moved.operation} takes the {moved.samples} samples of a batch for steps in time",
            moved.where,
            evidence={"given": moved.given, "read as": "(time, batch, features)"},
            fix="pass batch_first=True to the layer, or give it x.transpose(0, 1)",
            confidence=0.93,
        )
        return
    yield rule.finding(
        f"{moved.operation} of {moved.given} to {moved.made} puts parts of several samples into each row",
        moved.where,
        evidence={"samples": f"{moved.samples}, along axis {moved.given.index(moved.samples)} before it"},
        fix="bring the axis of the samples to the front first: transpose or permute, then reshape",
        confidence=0.93,
    )
