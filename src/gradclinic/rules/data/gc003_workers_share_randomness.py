"""The workers of a data loader draw the same random augmentation.

## What it finds
A sample with random augmentation that two workers, asked for it first thing, return bit for bit
equal, although one worker draws it differently each time.

## Why it hurts
Each worker starts with a copy of the same generator, so every augmentation appears once per worker
and again in the next epoch. There is less variety than the code says, and the gradient of a batch
holds repeated draws.

## What to do
Draw from `torch` (seeded for each worker), or make the generator in the worker, seeded with
`torch.utils.data.get_worker_info().seed`.

## Not the fix
Seeding the generator in `__init__`: that is the copy all workers share.

## Known limits
Needs a loader with at least two workers and a data set that is indexed. While a script runs, a generator
that the data set itself holds and no `worker_init_fn` replaces is taken to be shared. Source is judged
where class and loader are in one file and nothing in it seeds the workers.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import Source
from gradclinic.facts.stored import WorkerRandomness
from gradclinic.findings import Finding, Severity
from gradclinic.rules._rule import Rule

rule = Rule(
    "GC003",
    "workers-share-randomness",
    Severity.WARNING,
    since="0.1.0",
    sources=(Source.STATIC, Source.RUNTIME, Source.PROBE),
    topic="randomness of workers",
)

BAD = """
import random

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from gradclinic import Case


class Jittered(Dataset):
    def __init__(self):
        self.images, self.random = torch.rand(64, 8), random.Random(0)

    def __len__(self):
        return 64

    def __getitem__(self, index):
        return self.images[index] + self.random.random(), index % 2


def make():
    torch.manual_seed(0)
    return Case(
        nn.Linear(8, 2),
        (torch.rand(16, 8), torch.arange(16) % 2),
        lambda out, batch: nn.functional.cross_entropy(out, batch[1]),
        loader=DataLoader(Jittered(), batch_size=16, num_workers=2),
    )
"""

BAD_TRAINING = """
import random

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Jittered(Dataset):
    def __init__(self):
        self.x, self.draws = torch.randn(32, 4), random.Random(0)

    def __len__(self):
        return 32

    def __getitem__(self, index):
        return self.x[index] + 0.1 * self.draws.random(), self.x[index].sum(0, keepdim=True)


torch.manual_seed(0)
loader = DataLoader(Jittered(), batch_size=8, num_workers=2)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
for epoch in range(2):
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


class Jittered(Dataset):
    def __init__(self):
        self.images = torch.rand(64, 8)

    def __len__(self):
        return 64

    def __getitem__(self, index):
        return self.images[index] + torch.rand(()), index % 2


def make():
    torch.manual_seed(0)
    return Case(
        nn.Linear(8, 2),
        (torch.rand(16, 8), torch.arange(16) % 2),
        lambda out, batch: nn.functional.cross_entropy(out, batch[1]),
        loader=DataLoader(Jittered(), batch_size=16, num_workers=2),
    )
"""


@rule.check
def same_draws(seen: WorkerRandomness) -> Iterator[Finding]:
    if seen.shared:
        yield rule.finding(
            f"the {seen.workers} workers of the loader draw the same random augmentation",
            seen.where,
            evidence={"seen": seen.seen},
            fix="draw from torch's own stream in __getitem__, or make the generator in each worker",
            confidence=0.95,
        )
