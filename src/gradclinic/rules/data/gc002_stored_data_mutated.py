"""Reading a sample writes into the stored data set.

## What it finds
A data set in which fetching a sample changes what is stored, so that the same sample fetched again
is another one.

## Why it hurts
Augmentation piles up: an image that is darkened in place is darker each epoch, labels drift, and the
validation set may share the memory. Training degrades slowly and differently with each number of
workers, each of which damages its own copy.

## What to do
Copy before writing: `image = self.images[index].clone()` (or `.copy()`), and use operations without
a trailing underscore.

## Not the fix
Loading the data anew each epoch.

## Known limits
Data held as tensors and arrays in attributes of the data set, within the first samples.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import Source
from gradclinic.facts.stored import StoredData
from gradclinic.findings import Finding, Severity
from gradclinic.rules._rule import Rule

rule = Rule(
    "GC002",
    "stored-data-mutated",
    Severity.ERROR,
    since="0.1.0",
    sources=(Source.PROBE,),
    topic="stored data",
)

BAD = """
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from gradclinic import Case


class Dimmed(Dataset):
    def __init__(self):
        self.images, self.labels = torch.rand(64, 8), torch.arange(64) % 2

    def __len__(self):
        return 64

    def __getitem__(self, index):
        return self.images[index].mul_(0.9), self.labels[index]


def make():
    torch.manual_seed(0)
    return Case(
        nn.Linear(8, 2),
        loss=lambda out, batch: nn.functional.cross_entropy(out, batch[1]),
        loader=DataLoader(Dimmed(), batch_size=16),
    )
"""

GOOD = """
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from gradclinic import Case


class Dimmed(Dataset):
    def __init__(self):
        self.images, self.labels = torch.rand(64, 8), torch.arange(64) % 2

    def __len__(self):
        return 64

    def __getitem__(self, index):
        return self.images[index].mul(0.9), self.labels[index]


def make():
    torch.manual_seed(0)
    return Case(
        nn.Linear(8, 2),
        loss=lambda out, batch: nn.functional.cross_entropy(out, batch[1]),
        loader=DataLoader(Dimmed(), batch_size=16),
    )
"""


@rule.check
def written_while_read(seen: StoredData) -> Iterator[Finding]:
    for mutation in seen.mutations:
        yield rule.finding(
            f"fetching sample {mutation.index} writes into the stored {mutation.attribute}",
            mutation.where,
            evidence={"seen": "the same sample, fetched again with the same random state, is another one"},
            fix="copy the sample before changing it: .clone() or .copy()",
            confidence=0.97,
            subject=mutation.attribute,
        )
