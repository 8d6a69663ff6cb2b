"""Losses divided by what counts up within the window, which is not its length until its last micro-batch."""

from __future__ import annotations

import pytest

from tests.static.reading import TORCH, marked, told

LOOP = """
def train(model, optimizer, loader, args):
    count = 0
    for epoch in range(args.epochs):
        for x, y, is_last in loader:
            count += 1
            loss = F.cross_entropy(model(x), y)
            {divide}
            loss.backward(){mark}
            if {full}:
                {before}
                optimizer.step()
                optimizer.zero_grad()
                count = 0
"""
PLAIN = {"divide": "loss = loss / count", "full": "count >= args.every", "before": "pass"}
MARK = "  # GC106"

BY_THE_COUNT = [
    {},
    {"divide": "loss /= count"},
    {"divide": "loss = (loss + 0.1 * F.mse_loss(model(x), x)) / count"},
    {"full": "count >= args.every or is_last"},
    {"full": "count == args.every"},
]
BY_THE_LENGTH = [
    {"divide": "loss = loss / args.every"},
    {"divide": "loss = loss / args.every / count * count"},
    {"before": "[p.grad.mul_(count) for p in model.parameters()]"},
    {"full": "True"},
]


@pytest.mark.parametrize("change", BY_THE_COUNT, ids=str)
def test_a_loss_is_not_divided_by_the_length_of_its_window(change):
    source = TORCH + LOOP.format(**{**PLAIN, **change}, mark=MARK)
    assert told(source) == marked(source)


@pytest.mark.parametrize("change", BY_THE_LENGTH, ids=str)
def test_a_loss_is_divided_by_the_length(change):
    assert told(TORCH + LOOP.format(**{**PLAIN, **change}, mark="")) == set()


def test_the_sum_of_a_window_is_divided_where_it_ends():
    source = """
def train(model, optimizer, loader, args):
    count, total = 0, 0.0
    for x, y in loader:
        total = total + F.cross_entropy(model(x), y, reduction="sum")
        count += len(x)
        if count >= args.samples:
            total = total / count
            total.backward()
            optimizer.step()
            optimizer.zero_grad()
            count, total = 0, 0.0
"""
    assert told(TORCH + source) == set()


END_BY_ITS_NAME = """
def train(model, optimizer, loader, args):
    for i, (x, y, is_last_batch) in enumerate(loader):
        loss = F.cross_entropy(model(x), y){scaled}
        loss.backward(){mark}
        if (i + 1) % args.every == 0 or is_last_batch:
            optimizer.step()
            optimizer.zero_grad()
"""


def test_a_window_ends_with_what_is_called_the_last_batch():
    source = TORCH + END_BY_ITS_NAME.format(scaled="", mark=MARK)
    assert told(source) == marked(source)
    assert told(TORCH + END_BY_ITS_NAME.format(scaled=" / args.every", mark="")) == set()


@pytest.mark.parametrize(
    "divide",
    ["loss = loss / args.count", "loss = part_of(loss, args.every)"],
    ids=["a setting of the same name", "what a helper is given by the same name"],
)
def test_a_name_that_is_the_same_elsewhere_is_not_the_count(divide):
    helper = "\ndef part_of(loss, count):\n    return loss / count\n"
    assert told(TORCH + helper + LOOP.format(**{**PLAIN, "divide": divide}, mark="")) == set()
