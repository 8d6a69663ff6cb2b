"""Windows that are stepped once more where a count comes to its end, and loops named after an epoch."""

from __future__ import annotations

import pytest

from gradclinic.engine import judge
from gradclinic.static import observe_source
from tests.static.reading import TORCH, marked, told

LOOP = """
def train(model, loader, config, args):
    optimizer = {optimizer}
    for epoch in range(args.epochs):
        optimizer.zero_grad()
        for {index}, (x, y) in enumerate({loader}):
            loss = F.cross_entropy(model(x), y) / args.accumulate
            loss.backward()
            {clip}
            if {full}:
                optimizer.step()
                optimizer.zero_grad()
"""
PLAIN = {
    "optimizer": "torch.optim.SGD(model.parameters(), lr=0.1)",
    "index": "i",
    "loader": "loader",
    "clip": "nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # GC111",
    "full": "(i + 1) % args.accumulate == 0 or i >= args.iterations - 1",
}
OWN = 'getattr(config, "optimizer", torch.optim.SGD(model.parameters(), lr=0.1))'
NAMED = "(epoch_iter + 1) % args.accumulate == 0 or epoch_iter + 1 == len(loader)"

CLIPPED_TOO_OFTEN = [
    {},
    {"full": "(i + 1) % args.accumulate == 0 or i + 1 == args.iterations"},
    {"full": "(i + 1) % args.accumulate == 0 or i > args.iterations - 2"},
    {"full": "not ((i + 1) % args.accumulate != 0 and i < args.iterations - 1)"},
    {"optimizer": OWN},
    {"index": "epoch_iter", "loader": "epoch_bar", "full": NAMED},
    {"loader": "epoch_iterator"},
]
RIGHT = [
    {"clip": "pass"},
    {"optimizer": OWN, "clip": "pass"},
    {"index": "epoch_iter", "loader": "epoch_bar", "full": NAMED, "clip": "pass"},
    # Windows of one batch from some iteration on: what is clipped then is whole.
    {"full": "(i + 1) % args.accumulate == 0 or i > args.warmup_steps"},
    {"full": "(i + 1) % args.accumulate == 0 or i < args.iterations"},
]


@pytest.mark.parametrize("change", CLIPPED_TOO_OFTEN, ids=str)
def test_each_part_of_a_window_is_clipped(change: dict[str, str]) -> None:
    source = TORCH + LOOP.format(**PLAIN | change)
    assert told(source) == marked(source) != set()


@pytest.mark.parametrize("change", RIGHT, ids=str)
def test_the_last_window_is_stepped_as_well(change: dict[str, str]) -> None:
    assert told(TORCH + LOOP.format(**PLAIN | change)) == set()


LEFT_OVER = """
def train(model, loader, args):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(args.epochs):
        optimizer.zero_grad()
        epoch_iterator = wrapped(loader, desc="Iteration")
        for step, (x, y) in enumerate(epoch_iterator):
            loss = F.cross_entropy(model(x), y) / args.gradient_accumulation_steps
            loss.backward()
            if (step + 1) % args.gradient_accumulation_steps == 0{end}:
                optimizer.step()
                optimizer.zero_grad()
"""


def advised(source: str) -> list[str]:
    return [finding.code for finding in judge([observe_source(source, "train.py")])]


def test_an_iterator_of_one_epoch_goes_over_batches() -> None:
    assert advised(TORCH + LEFT_OVER.format(end="")) == ["GC108"]
    assert advised(TORCH + LEFT_OVER.format(end=" or step == len(loader) - 1")) == []
    assert advised(TORCH + LEFT_OVER.format(end=" or step >= args.steps - 1")) == []
