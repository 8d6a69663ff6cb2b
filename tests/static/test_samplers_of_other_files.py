"""Samplers of a file whose passes are another file's: nobody tells them the epoch where neither does."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradclinic.config import Config
from gradclinic.linting.examine import examine

MAIN = """
import torch
from torch.utils.data import DataLoader, DistributedSampler
from engine import evaluate, train_one_epoch

def main(args, model, data, optimizer):
    train_sampler = DistributedSampler(data)
    train_loader = DataLoader(data, sampler=train_sampler)
    for epoch in range(args.start_epoch, args.epochs):
        {told}
        train_one_epoch(model, optimizer, train_loader, epoch)
        evaluate(model)
"""
ENGINE = """
def train_one_epoch(model, optimizer, loader, epoch):
    {told}
    for x, y in loader:
        optimizer.zero_grad()
        model(x, y).backward()
        optimizer.step()

def evaluate(model):
    print(model)
"""


def codes(folder: Path, main: str, engine: str) -> list[str]:
    (folder / "setup.py").touch()
    (folder / "engine.py").write_text(engine)
    train = folder / "train.py"
    train.write_text(main)
    return [finding.code for finding in examine(str(train), Config(), frozenset({str(train)})).findings]


def test_neither_file_sets_the_epoch(tmp_path: Path) -> None:
    assert codes(tmp_path, MAIN.format(told="pass"), ENGINE.format(told="pass")) == ["GC904"]


@pytest.mark.parametrize(
    ("main", "engine"),
    [
        ("train_sampler.set_epoch(epoch)", "pass"),
        ("pass", "loader.sampler.set_epoch(epoch)"),
        ("train_sampler.epoch = epoch", "pass"),
    ],
)
def test_either_may(tmp_path: Path, main: str, engine: str) -> None:
    assert codes(tmp_path, MAIN.format(told=main), ENGINE.format(told=engine)) == []


def test_the_other_file_may_not_be_there(tmp_path: Path) -> None:
    main = MAIN.format(told="pass").replace("from engine", "from elsewhere")
    assert codes(tmp_path, main, ENGINE.format(told="pass")) == []


def test_what_is_not_trained_there_is_not_repeated(tmp_path: Path) -> None:
    engine = ENGINE.format(told="pass").replace(".backward()", "")
    assert "GC904" not in codes(tmp_path, MAIN.format(told="pass"), engine)


def test_folds_are_no_epochs(tmp_path: Path) -> None:
    main = MAIN.format(told="pass").replace(
        "for epoch in range(args.start_epoch, args.epochs)", "for k in range(5)"
    )
    assert codes(tmp_path, main.replace(", epoch)", ", k)"), ENGINE.format(told="pass")) == []
