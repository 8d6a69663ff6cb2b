"""Windows whose end is told by other means than a remainder in the condition itself."""

from __future__ import annotations

from textwrap import dedent

import pytest

from tests.rules.scripts import codes_by_lint
from tests.static.reading import TORCH, told

LOOP = """\
import torch
import torch.nn.functional as F
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
BEFORE
for epoch in range(10):
    for i, (x, y) in enumerate(loader):
        SIGN
        loss = F.mse_loss(model(x), y) / LENGTH
        loss.backward()
        if END:
            optimizer.step()
            CLEAR
            AGAIN
"""
WAYS = {
    "a flag set by a remainder": ("", "end = True if (i + 1) % 4 == 0 else False", "end", "pass", 4),
    "a flag set in two branches": (
        "",
        "if (i + 1) % 4 == 0:\n            end = True\n        else:\n            end = False",
        "end",
        "pass",
        4,
    ),
    "the next one": ("due = 3", "pass", "i == due", "due += 4", 4),
    "the next one, far away": ("due = 7", "pass", "i == due", "due += 8", 8),
    "since the last one": ("start = 0", "pass", "i - start == 3", "start = i + 1", 4),
    "counted down": ("left = 4", "left -= 1", "left == 0", "left = 4", 4),
    "what was kept": ("kept = []", "kept.append(i)", "len(kept) == 4", "kept = []", 4),
    "a number of samples": ("seen = 0", "seen += len(x)", "seen >= 1024", "seen = 0", 4),
}


@pytest.mark.parametrize("way", WAYS)
def test_the_step_at_its_end_is_seen(way: str) -> None:
    assert _told(way, "optimizer.zero_grad()") == set()


@pytest.mark.parametrize("way", ["a flag set by a remainder", "a flag set in two branches"])
def test_what_is_not_cleared_there_is_told(way: str) -> None:
    assert _told(way, "pass") == {"GC101"}


def _told(way: str, clear: str) -> set[str]:
    """But for the note that the last window of an epoch may be short, which is true of all of them."""
    return set(codes_by_lint(_written(way, clear))) - {"GC108"}


def _written(way: str, clear: str) -> str:
    before, sign, end, again, length = WAYS[way]
    parts = {"BEFORE": before, "SIGN": sign, "END": end, "AGAIN": again, "CLEAR": clear}
    script = LOOP.replace("LENGTH", str(length))
    for word, part in parts.items():
        script = script.replace(word, part)
    return script


@pytest.mark.parametrize("asked", ["seen >= limit", "limit <= seen", "seen == limit", "limit == seen"])
def test_a_sum_may_stand_on_either_side_of_its_limit(asked: str) -> None:
    source = f"""
    def train(model, optimizer, loader, limit):
        seen = 0
        for x, y in loader:
            loss = F.mse_loss(model(x), y)
            loss.backward()
            seen += len(x)
            if {asked}:
                optimizer.step()
                optimizer.zero_grad()
                seen = 0
    """
    assert ("GC106", 10) in told(TORCH + dedent(source))
    scaled = source.replace("model(x), y)", "model(x), y) * len(x) / limit")
    assert told(TORCH + dedent(scaled)) == set()


@pytest.mark.parametrize("last", ["i == len(data) // size", "i == batches", "i + 1 == len(loader)"])
def test_beside_a_sum_a_count_asks_for_the_last_batch(last: str) -> None:
    source = f"""
    def train(model, loader, limit, data, size, batches):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        seen = 0
        for i, (x, y) in enumerate(loader):
            loss = F.mse_loss(model(x), y)
            loss.backward()
            seen += len(x)
            if limit == seen or {last}:
                optimizer.step()
                optimizer.zero_grad()
                seen = 0
    """
    assert told(TORCH + dedent(source)) == {("GC106", 11)}
    scaled = source.replace("model(x), y)", "model(x), y) * len(x) / limit")
    assert told(TORCH + dedent(scaled)) == set()
