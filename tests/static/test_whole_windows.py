"""Loops over batches whose number is brought to whole windows before: nothing is left over to be told of."""

from __future__ import annotations

import pytest

from gradclinic.engine import judge
from gradclinic.static import observe_source
from tests.static.reading import TORCH

LOOP = """
from itertools import islice
from torch.utils.data import BatchSampler, DataLoader, RandomSampler

def train(model, loader, args):
    k = args.accumulation_steps
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    {before}
    for epoch in range(args.epochs):
        for i, (x, y) in enumerate({over}):
            {first}
            (F.cross_entropy(model(x), y) / k).backward()
            if (i + 1) % k == 0:
                optimizer.step()
                optimizer.zero_grad()
"""
PLAIN = {"before": "pass", "over": "loader", "first": "pass"}
LEAVES = "if i >= {}: break"

WHOLE = [
    {"before": "full = len(loader) // k", "first": LEAVES.format("full * k")},
    {"before": "last = len(loader) - len(loader) % k", "first": LEAVES.format("last")},
    {"first": LEAVES.format("len(loader) // k * k")},
    {"over": "islice(loader, len(loader) // k * k)"},
    {"before": "assert len(loader) % k == 0"},
    {"before": "if len(loader) % k:\n        raise ValueError('whole windows only')"},
    {"before": "loader = DataLoader(split(BatchSampler(args.data, args.size * k, drop_last=True), k))"},
]
CUT = [
    {},
    {"first": LEAVES.format("args.most")},
    {"before": "assert k > 0"},
    {"before": "updates = len(loader) // k"},
    {"before": "loader = DataLoader(args.data, args.size, drop_last=True)"},
]


def codes(way: dict[str, str]) -> set[str]:
    source = TORCH + LOOP.format(**PLAIN | way)
    return {finding.code for finding in judge([observe_source(source, "train.py")])}


@pytest.mark.parametrize("way", WHOLE, ids=str)
def test_nothing_is_left_over(way: dict[str, str]) -> None:
    assert codes(way) == set()


@pytest.mark.parametrize("way", CUT, ids=str)
def test_what_may_be_left_over_is_noted(way: dict[str, str]) -> None:
    assert codes(way) == {"GC108"}
