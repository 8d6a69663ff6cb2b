"""A file that is read by itself: what its functions do for those who call them is told of it too."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradclinic.config import Config
from gradclinic.linting import lint

NETS = """\
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 3))

    def forward(self, x):
        return self.body(x)
"""
UTILS = """\
import torch

def test_all(model, loader):
    {begin}
    hits = 0
    with torch.no_grad():
        for x, y in loader:
            hits += (model(x).argmax(1) == y).sum().item()
    return hits

def clip_all(optimizer, limit):
    for group in optimizer.param_groups:
        for p in group["params"]:
            p.grad.data.clamp_(-limit, limit)
"""
TRAIN = """\
import torch
from torch import nn
from nets import Net
from utils import clip_all, test_all

model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(9):
    model.train()
    for x, y in train_loader:
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        clip_all(optimizer, 1.0)
        optimizer.step()
    print(test_all(model, test_loader))
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)

    def write(**modules: str) -> None:
        (tmp_path / "pyproject.toml").touch()
        for name, text in modules.items():
            (tmp_path / f"{name}.py").write_text(text)

    return write


def found(*paths: str, severe: bool = True) -> list[str]:
    diagnosis = lint(paths, Config(), jobs=1)
    assert not diagnosis.problems
    return [f"{f.location} {f.code}" for f in diagnosis.findings if not severe or f.severity != "info"]


def test_an_evaluation_in_the_mode_that_its_caller_leaves_behind(project):
    project(nets=NETS, utils=UTILS.format(begin="pass"), train=TRAIN)
    assert found("utils.py") == ["utils.py:8 GC702"]
    assert found("train.py") == ["utils.py:8 GC702"]
    assert found("utils.py", "train.py") == ["utils.py:8 GC702"]


def test_an_evaluation_that_sets_its_mode_is_left_alone(project):
    project(nets=NETS, utils=UTILS.format(begin="model.eval()"), train=TRAIN)
    assert found("utils.py") == found("train.py") == []


def test_faults_of_the_caller_are_not_told_of_what_it_calls(project):
    faulty = TRAIN.replace("        optimizer.zero_grad()\n", "")
    project(nets=NETS, utils=UTILS.format(begin="model.eval()"), train=faulty)
    assert found("utils.py") == []
    assert found("train.py") == ["train.py:12 GC101"]


def test_a_caller_that_cannot_be_read_tells_nothing(project):
    project(nets=NETS, utils=UTILS.format(begin="pass"), train=f"{TRAIN}\nfor\n")
    assert found("utils.py") == []


def test_a_comment_in_the_file_itself_silences(project):
    utils = UTILS.format(begin="pass").replace(".item()", ".item()  # gradclinic: ignore[GC702]")
    project(nets=NETS, utils=utils, train=TRAIN)
    assert found("utils.py") == []


def test_tests_of_the_file_are_not_asked(project):
    project(nets=NETS, utils=UTILS.format(begin="pass"), test_utils=TRAIN)
    assert found("utils.py") == []


def test_a_clip_is_told_where_it_is_asked_for_and_the_way_it_clips_where_it_does(project):
    late = TRAIN.replace("        clip_all(optimizer, 1.0)\n        optimizer.step()\n", "").replace(
        "        loss.backward()\n",
        "        loss.backward()\n        optimizer.step()\n        clip_all(optimizer, 1.0)\n",
    )
    project(nets=NETS, utils=UTILS.format(begin="model.eval()"), train=late)
    assert found("train.py", severe=False) == ["train.py:15 GC109", "utils.py:14 GC611"]
