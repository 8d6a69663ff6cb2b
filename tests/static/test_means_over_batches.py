"""Losses that are means over their own batch, however they are written."""

from __future__ import annotations

import pytest

from tests.static.reading import TORCH, marked, told

WINDOW = """
def run(model, loader, args):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for index, (x, y, mask) in enumerate(loader):
        {count}
        {loss}
        loss.backward(){mark}
        if (index + 1) % args.accumulation_steps == 0 or index + 1 == len(loader):
            optimizer.step()
            optimizer.zero_grad()
"""

MICRO_BATCHES = """
def run(model, loader, args):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in loader:
        optimizer.zero_grad()
        {outer}
        for x, y, mask in batch.split(args.micro_batch_size):
            {inner}
            loss = F.cross_entropy(model(x), y, reduction="sum") / count
            loss.backward(){mark}
        optimizer.step()
"""
EACH = 'each = F.cross_entropy(model(x), y, reduction="none")'


def window(loss: str, *, count: str = EACH, wrong: bool = False) -> str:
    return TORCH + WINDOW.format(count=count, loss=f"loss = {loss}", mark="  # GC106" if wrong else "")


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(window("(each * mask).sum() / mask.sum()", wrong=True), id="over what a mask leaves"),
        pytest.param(window("torch.sum(each * mask) / torch.sum(mask)", wrong=True), id="the same by torch"),
        pytest.param(window("torch.mean(each)", wrong=True), id="a mean by torch"),
        pytest.param(window("(each * mask).sum() / (mask.sum() + 1e-8)", wrong=True), id="never by zero"),
        pytest.param(window("(each * mask).sum() / mask.sum().clamp(min=1)", wrong=True), id="or so"),
        pytest.param(
            window("(each * mask).sum() / mask.sum() * args.world_size", wrong=True), id="ranks average"
        ),
        pytest.param(
            window(
                "(1 - args.share) * F.cross_entropy(model(x), y) + args.share * F.mse_loss(model(x), y)",
                count="pass",
                wrong=True,
            ),
            id="two terms with a weight each",
        ),
        pytest.param(
            TORCH + MICRO_BATCHES.format(outer="pass", inner="count = mask.sum()", mark="  # GC106"),
            id="counted for each micro-batch",
        ),
    ],
)
def test_a_mean_of_one_batch_is_no_mean_of_the_window(source: str) -> None:
    assert told(source) == marked(source)


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(window("(each * mask).sum() / mask.sum() / args.accumulation_steps"), id="divided"),
        pytest.param(window("torch.mean(each) / args.accumulation_steps"), id="divided after torch.mean"),
        pytest.param(window("torch.mean(each / args.accumulation_steps)"), id="or before"),
        pytest.param(window("torch.mean(each * mask)"), id="samples may be weighted for the window"),
        pytest.param(window("torch.mean(each, dim=1).sum()"), id="a sum of means"),
        pytest.param(window("(each * mask).sum() / args.tokens_per_update"), id="over more than the batch"),
        pytest.param(window("(each * mask).sum() / mask.sum() * args.share"), id="it may be weighted"),
        pytest.param(window("(each * mask).sum() / (args.k * mask.sum())"), id="over all of the window"),
        pytest.param(window("args.k * (each * mask).sum() / mask.sum()"), id="by a share of the window"),
        pytest.param(
            window(
                "args.w['a'] * F.mse_loss(model(x), y) + args.w['b'] * F.l1_loss(model(x), y)", count="pass"
            ),
            id="weights that were computed before",
        ),
        pytest.param(window("args.share * F.mse_loss(model(x), y)", count="pass"), id="so may one term"),
        pytest.param(
            window("args.k * F.mse_loss(model(x), y) + args.k * F.l1_loss(model(x), y)", count="pass"),
            id="one weight for all is no weight of a term",
        ),
        pytest.param(
            TORCH + MICRO_BATCHES.format(outer="count = batch.mask.sum()", inner="pass", mark=""),
            id="counted for the whole window",
        ),
    ],
)
def test_what_may_be_scaled_to_the_window_is_left_alone(source: str) -> None:
    assert told(source) == set()


@pytest.mark.parametrize(
    ("given", "right"),
    [
        ("loss, count", True),
        ("loss, num_tokens, logs", True),
        ("loss, scores", False),
    ],
)
def test_a_loss_given_back_with_its_count_is_a_sum(given: str, right: bool) -> None:
    source = WINDOW.format(count="pass", loss=f"{given} = model(x, y)", mark="" if right else "  # GC106")
    assert told(TORCH + source) == marked(TORCH + source)


TOLD_THE_WINDOW = """
def run(model, loader, args):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for index, batch in enumerate(loader):
        batch["scale"] = {scale}
        loss = model(**batch)
        loss.backward(){mark}
        if (index + 1) % args.accumulation_steps == 0 or index + 1 == len(loader):
            optimizer.step()
            optimizer.zero_grad()
"""


def test_a_model_that_is_told_the_window_may_divide_by_it() -> None:
    scale = "1 / (batch['mask'].sum() * args.accumulation_steps)"
    assert told(TORCH + TOLD_THE_WINDOW.format(scale=scale, mark="")) == set()
    faulty = TORCH + TOLD_THE_WINDOW.format(scale="0.5", mark="  # GC106")
    assert told(faulty) == marked(faulty) != set()
