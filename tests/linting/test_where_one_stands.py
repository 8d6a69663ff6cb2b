"""The same is told of a file from wherever it is linted: what it imports is looked for around it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gradclinic.config import Config
from gradclinic.linting import lint
from gradclinic.static.project_files import above

NETS = """\
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.score = nn.Linear(4, 3)

    def forward(self, x):
        return self.score(x){ending}
"""
TRAIN = """\
import torch
import torch.nn.functional as F
{imported}

model = {net}()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for x, y in loader:
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
SPELLINGS = {
    "from ours.nets.small import Net": "Net",
    "from ours.nets import small": "small.Net",
    "import ours.nets.small as small": "small.Net",
    "from ..nets.small import Net": "Net",
    "from ..nets import small": "small.Net",
    "from .. import nets": "nets.small.Net",
}
STANDS = {
    "": "ours/bin/train.py",
    "ours": "bin/train.py",
    "ours/bin": "train.py",
    "ours/nets": "../bin/train.py",
    "elsewhere": "../ours/bin/train.py",
}


def project(folder: Path, imported: str, ending: str = ".softmax(-1)") -> Path:
    files = {
        "pyproject.toml": "",
        "ours/__init__.py": "",
        "ours/nets/__init__.py": "from . import small\n",
        "ours/nets/small.py": NETS.format(ending=ending),
        "ours/bin/__init__.py": "",
        "ours/bin/train.py": TRAIN.format(imported=imported, net=SPELLINGS[imported]),
        "elsewhere/notes.txt": "",
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def found(path: str) -> list[str]:
    diagnosis = lint([path], Config(), jobs=1)
    assert not diagnosis.problems
    return [f"{finding.location} {finding.code}" for finding in diagnosis.findings]


@pytest.mark.parametrize("stand", STANDS)
@pytest.mark.parametrize("imported", SPELLINGS)
def test_a_model_is_found_from_every_folder_and_by_every_import(tmp_path, monkeypatch, imported, stand):
    monkeypatch.chdir(project(tmp_path, imported) / stand)
    assert found(STANDS[stand]) == [f"{STANDS[stand]}:8 GC401"]


@pytest.mark.parametrize("stand", STANDS)
def test_a_right_model_is_left_alone_from_every_folder(tmp_path, monkeypatch, stand):
    monkeypatch.chdir(project(tmp_path, "from ..nets import small", ending="") / stand)
    assert found(STANDS[stand]) == []


@pytest.mark.parametrize("stand", ["", "ours", "ours/nets", "elsewhere"])
def test_who_trains_a_model_is_found_from_every_folder(tmp_path, monkeypatch, stand):
    monkeypatch.chdir(project(tmp_path, "from ours.nets.small import Net") / stand)
    path = os.path.relpath(tmp_path / "ours/nets/small.py")
    assert found(path) == [f"{path}:9 GC401"]


def test_what_lies_outside_of_the_project_is_not_taken_for_a_part_of_it(tmp_path, monkeypatch):
    inner = project(tmp_path / "inner", "from ours.nets.small import Net", ending="")
    project(tmp_path, "from ours.nets.small import Net")
    (inner / "ours/nets/small.py").unlink()
    monkeypatch.chdir(inner / "ours/bin")
    assert found("train.py") == []


def test_folders_above_are_spelled_in_one_way():
    ways = [os.path.join("a", "b")]
    for _ in range(4):
        ways.append(above(ways[-1]))
    assert ways == [os.path.join("a", "b"), "a", "", os.pardir, os.path.join(os.pardir, os.pardir)]
    assert above(os.sep) == os.sep
