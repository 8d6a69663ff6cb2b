"""Ranks side by side, as torchrun starts them: who speaks, how each ends, where they part."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ranks.processes import report_of_ranks, run_on_ranks

TRAINING = """\
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(rank)
model = DistributedDataParallel(nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr={rate})
for step in range(10):
    x = torch.randn(8, 4)
    optimizer.zero_grad()
    with {around}:
        loss = nn.functional.mse_loss({forward}(x), x.sum(1, keepdim=True))
        loss.backward()
    optimizer.step()
    {after}
print("rank", rank)
{end}
"""
USUAL = {
    "rate": "0.01",
    "around": "torch.enable_grad()",
    "forward": "model",
    "after": "pass",
    "end": "dist.destroy_process_group()",
}
CLIP = "nn.utils.clip_grad_norm_(model.parameters(), 1.0)"
AVERAGE = "[dist.all_reduce(p.data.div_(2)) for p in model.parameters()] if step % 2 else None"


def written(folder: Path, **different: str) -> None:
    (folder / "train.py").write_text(TRAINING.format(**{**USUAL, **different}))


def test_only_the_first_rank_fails_for_findings_and_only_if_asked_to(tmp_path: Path) -> None:
    written(tmp_path, after=CLIP)
    first, second = run_on_ranks(tmp_path, "--quiet", "--fail-on", "error", "train.py")

    assert first.err.startswith("train.py:18: error GC109")
    assert (first.code, second.code) == (1, 0)
    assert (first.out, second.out, second.err) == ("rank 0\n", "rank 1\n", "")


def test_a_rank_that_fails_speaks_for_all(tmp_path: Path) -> None:
    written(tmp_path, after=CLIP, end="if rank == 1: raise ValueError('no more data')")
    first, second = run_on_ranks(tmp_path, "train.py")

    assert second.code == 1
    assert "ValueError: no more data" in second.err
    assert (first.err + second.err).count("error GC109") == 1
    assert "all 2 ranks" in first.err + second.err


@pytest.mark.parametrize(
    ("different", "says"),
    [
        (
            {"rate": "0.01 * (rank + 1)"},
            "weights of model differ between ranks 0 and 1 after the first update",
        ),
        (
            {"around": "model.no_sync()"},
            "gradients of model differ between ranks 0 and 1 in the first update",
        ),
    ],
    ids=["rate", "no_sync"],
)
def test_copies_that_part_are_told_by_how_they_part(
    different: dict[str, str], says: str, tmp_path: Path
) -> None:
    written(tmp_path, **different)
    (finding,) = report_of_ranks(tmp_path, "train.py")["findings"]

    assert finding["code"] == "GC902"
    assert says in finding["message"]


def test_a_wrapper_gone_around_is_the_one_cause_of_copies_that_part(tmp_path: Path) -> None:
    written(tmp_path, forward="model.module")
    (finding,) = report_of_ranks(tmp_path, "train.py")["findings"]

    assert (finding["code"], finding["location"]["line"], finding["ranks"]) == ("GC903", 15, [0, 1])


def test_copies_that_are_averaged_by_hand_every_so_often_may_part(tmp_path: Path) -> None:
    written(tmp_path, around="model.no_sync()", after=AVERAGE)

    assert report_of_ranks(tmp_path, "train.py")["findings"] == []


BY_HAND = """\
import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
torch.manual_seed({seed})
model = nn.Linear(32, 1)
{share}
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
torch.manual_seed(dist.get_rank())
for step in range(20):
    x = torch.randn(8, 32)
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    {average}
    optimizer.step()
    {after}
dist.destroy_process_group()
"""
AS_THEY_ARE = {"seed": "dist.get_rank()", "share": "", "average": "", "after": ""}
SHARE = {"share": "[dist.broadcast(p.data, 0) for p in model.parameters()]"}
AVERAGED = {"average": "[dist.all_reduce(p.grad.div_(2)) for p in model.parameters()]"}


@pytest.mark.parametrize(
    ("different", "severity", "says"),
    [
        (SHARE, "error", "the gradients of model differ between ranks 0 and 1 in the first update"),
        (AVERAGED, "error", "the weights of model differ between ranks 0 and 1 before the first update"),
        ({"seed": "0"}, "warning", "the gradients of model differ between ranks 0 and 1 in the first update"),
    ],
    ids=["not averaged", "not shared", "nothing exchanged"],
)
def test_copies_that_are_kept_equal_by_hand_only_in_part(
    different: dict[str, str], severity: str, says: str, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(BY_HAND.format(**{**AS_THEY_ARE, **different}))
    (finding,) = report_of_ranks(tmp_path, "train.py")["findings"]

    assert (finding["code"], finding["severity"], finding["message"]) == ("GC902", severity, says)


@pytest.mark.parametrize(
    "different",
    [
        {**SHARE, **AVERAGED},
        {**SHARE, "after": "[dist.all_reduce(p.data.div_(2)) for p in model.parameters() if step % 7 == 6]"},
        {},
    ],
    ids=["every gradient", "weights now and then", "a model each"],
)
def test_ranks_that_may_differ_or_do_not(different: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(BY_HAND.format(**{**AS_THEY_ARE, **different}))

    assert report_of_ranks(tmp_path, "train.py")["findings"] == []
