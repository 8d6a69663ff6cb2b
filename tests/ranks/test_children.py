"""Processes that a script starts by itself are watched too, and reported through it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ranks.processes import report_of

MANY = """\
import torch
import torch.multiprocessing as mp
from torch import nn


def train(rank):
    torch.set_num_threads(1)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(10):
        x = torch.randn(8, 4)
        loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)


if __name__ == "__main__":
    mp.start_processes(train, nprocs={number}, start_method="{method}")
"""


@pytest.mark.parametrize(("method", "number"), [("fork", 2), ("spawn", 1)])
def test_children_of_multiprocessing_are_reported_once(method: str, number: int, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(MANY.format(method=method, number=number))
    report = report_of(tmp_path, "train.py")

    assert [(f["code"], f["location"]["line"]) for f in report["findings"]] == [("GC109", 16)]
    assert report["summary"]["steps"] == 10 * number


WITH_WORKERS = """\
import os, sys
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

x = torch.randn(64, 4)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=8, num_workers=2)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for epoch in range(2):
    for inputs, targets in loader:
        loss = nn.functional.mse_loss(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
child = os.fork()
if child == 0:
    sys.exit(3)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
assert os.listdir(os.environ["GRADCLINIC_RECORDS"]) == []
"""


def test_workers_that_load_data_and_forks_by_hand_leave_no_word(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(WITH_WORKERS)
    report = report_of(tmp_path, "train.py")

    assert (report["findings"], report["problems"]) == ([], [])
    assert report["summary"]["steps"] == 16
    assert (tmp_path / "printed").read_text() == ""
