"""One sample's output depends on the other samples of its batch.

## What it finds
A model in which replacing the other samples of a batch changes the output of the one that stayed,
batch-norm in training mode aside.

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
Samples must lie along one dimension of all tensors of the batch. Graphs joined into one big graph
are not judged.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import Source
from gradclinic.facts.samples import Independence
from gradclinic.findings import Finding, Severity
from gradclinic.rules._rule import Rule

rule = Rule(
    "GC412",
    "samples-mixed",
    Severity.ERROR,
    since="0.1.0",
    sources=(Source.PROBE,),
    topic="independence of samples",
    explains=("GC612",),
)

BAD = """
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
