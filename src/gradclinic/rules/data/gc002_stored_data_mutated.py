"""Reading a sample writes into the stored data set.

## What it finds
A data set in which fetching a sample changes what is stored, so that the same sample fetched again
is another one; and a batch that is a slice of the data, `x = data[i : i + 32]`, changed in place.

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
Data held as tensors and arrays in attributes of the data set, within the first samples. While a script
runs, workers of a loader are other processes, and what they write stays with them and is not seen. In
source, `__getitem__` of a class that is a `Dataset` by name, and slices of tensors made in the same file.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import Source
from gradclinic.facts.stored import SliceWritten, StoredData
from gradclinic.findings import Finding, Severity
from gradclinic.rules._rule import Rule

rule = Rule(
    "GC002",
    "stored-data-mutated",
    Severity.ERROR,
    since="0.1.0",
    sources=(Source.STATIC, Source.RUNTIME, Source.PROBE),
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

BAD_TRAINING = """
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Noisy(Dataset):
    def __init__(self):
        self.x = torch.randn(64, 4)

    def __len__(self):
        return 64

    def __getitem__(self, index):
        x = self.x[index]
        y = x.sum(0, keepdim=True)
        x += 0.1 * torch.randn(4)
        return x, y


torch.manual_seed(0)
loader = DataLoader(Noisy(), batch_size=16, shuffle=True)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
for epoch in range(5):
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
"""

BAD_SLICE = """
import torch
from torch import nn

torch.manual_seed(0)
data = torch.randn(128, 4)
goal = data.sum(1, keepdim=True)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
for epoch in range(5):
    for start in range(0, 128, 16):
        x = data[start : start + 16]
        x += 0.1 * torch.randn_like(x)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), goal[start : start + 16])
        loss.backward()
        optimizer.step()
"""

GOOD_CACHE = """
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Cached(Dataset):
    def __init__(self):
        self.x = torch.randn(64, 4)
        self.ready = torch.zeros(64, dtype=torch.bool)
        self.cache = torch.zeros(64, 4)

    def __len__(self):
        return 64

    def __getitem__(self, index):
        if not self.ready[index]:
            self.cache[index] = self.x[index] * 2
            self.ready[index] = True
        return self.cache[index], self.x[index].sum(0, keepdim=True)


torch.manual_seed(0)
loader = DataLoader(Cached(), batch_size=16, shuffle=True)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
for epoch in range(5):
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
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
        sample = "a sample" if mutation.index is None else f"sample {mutation.index}"
        yield rule.finding(
            f"fetching {sample} writes into the stored {mutation.attribute}",
            mutation.where,
            evidence={"seen": seen.seen},
            fix="copy the sample before changing it: .clone() or .copy()",
            confidence=0.97,
            subject=mutation.attribute,
        )


OFTEN = 3


@rule.check
def slice_written(seen: SliceWritten) -> Iterator[Finding]:
    if seen.steps >= OFTEN:
        yield rule.finding(
            f"the batch is a slice of stored data, and {seen.operation} writes into it",
            seen.where,
            evidence={"slice": f"{seen.rows} rows of {seen.of}", "seen in": f"{seen.steps} steps"},
            fix="change a copy: x = x + noise, or .clone() the slice first",
            confidence=0.9,
        )
