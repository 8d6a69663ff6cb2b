"""The distributed sampler shuffles with the same epoch number in every pass.

## What it finds
A `DistributedSampler(shuffle=True)` that gave the batches of several passes in one and the same order,
because `set_epoch` was not called between them.

## Why it hurts
The sampler's order is a function of its seed and its epoch, so that all ranks agree on it. Without
`set_epoch` every epoch repeats the first: the same batches in the same order, and each rank sees
only the samples of its first share, for the whole training.

## What to do
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        for batch in loader:

## Not the fix
`shuffle=True` on the DataLoader, which excludes a sampler; or a seed that depends on the rank, for
then the shares of the ranks overlap.

## Known limits
Passes that no update followed, such as evaluation, are not counted. Source is judged only where
both loops, over epochs and over batches, are in the file of the sampler. A sampler of data that is
read for one epoch only has no order to repeat.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradclinic.facts import DISTRIBUTED, ShardedShuffle, Source
from gradclinic.findings import Finding, Severity
from gradclinic.rules._rule import Rule

rule = Rule(
    "GC904",
    "sampler-epoch-not-set",
    Severity.WARNING,
    since="0.1.0",
    sources=(Source.STATIC, Source.RUNTIME),
    topic=DISTRIBUTED,
)

BAD = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

x = torch.randn(64, 4)
data = TensorDataset(x, x.sum(1, keepdim=True))
sampler = DistributedSampler(data, num_replicas=2, rank=0)
loader = DataLoader(data, batch_size=4, sampler=sampler)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for epoch in range(3):
    for inputs, targets in loader:
        loss = nn.functional.mse_loss(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""

GOOD = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

x = torch.randn(64, 4)
data = TensorDataset(x, x.sum(1, keepdim=True))
sampler = DistributedSampler(data, num_replicas=2, rank=0)
loader = DataLoader(data, batch_size=4, sampler=sampler)
check = DataLoader(data, batch_size=16, sampler=DistributedSampler(data, num_replicas=2, rank=0))
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for epoch in range(3):
    sampler.set_epoch(epoch)
    for i, (inputs, targets) in enumerate(loader):
        loss = nn.functional.mse_loss(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if i == 4:
            with torch.no_grad():
                print(sum(nn.functional.mse_loss(model(a), b).item() for a, b in check))
"""


@rule.check
def repeats_its_order(shuffle: ShardedShuffle) -> Iterator[Finding]:
    if shuffle.epochs is None:
        yield rule.finding(
            "the sampler's epoch is never set: each epoch repeats the order of the first",
            shuffle.where,
            fix="call sampler.set_epoch(epoch) at the beginning of each epoch",
            confidence=0.9,
        )
        return
    passes = len(shuffle.epochs)
    if passes > 1 and len(set(shuffle.epochs)) == 1:
        yield rule.finding(
            f"{passes} passes over the data were shuffled the same way: the sampler's epoch was never set",
            shuffle.where,
            evidence={"sampler's epoch": ", ".join(map(str, shuffle.epochs[:8]))},
            fix="call sampler.set_epoch(epoch) before each pass",
            confidence=0.97,
        )
