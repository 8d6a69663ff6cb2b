"""A file that is read by itself: what its losses are given is asked of those who call its functions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gradclinic.config import Config
from gradclinic.linting import lint

MODEL = """\
from torch import nn

class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.score = nn.Linear(4, 3)
        self.last = nn.{last}(dim=1)

    def forward(self, x):
        return self.last(self.score(x))

    def set_loss(self, loss):
        self.loss = loss

    def epoch(self, loader):
        for x, y in loader:
            loss = self.loss(self(x), y)
            loss.backward()
"""
SCRIPT = """\
from torch import nn
from head import Head

head = Head()
head.set_loss(nn.NLLLoss())
head.epoch(loader)
"""
LOOP = """\
import torch

def epoch(model, criterion, loader):
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
"""
MAIN = """\
from torch import nn
from engine{inner} import epoch
from head import Head

def main():
    epoch(Head(), nn.CrossEntropyLoss(), loader)
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "pyproject.toml").write_text("")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def found(*paths: str) -> set[tuple[str, str, int]]:
    diagnosis = lint(paths, Config())
    assert not diagnosis.problems
    return {(f.code, f.location.path, f.location.line) for f in diagnosis.findings if f.location}


@pytest.mark.parametrize(("last", "codes"), [("Softmax", {("GC404", "head.py", 17)}), ("LogSoftmax", set())])
def test_a_loss_set_from_outside_is_asked_for(project: Path, last: str, codes: set[object]) -> None:
    (project / "head.py").write_text(MODEL.format(last=last))
    (project / "train.py").write_text(SCRIPT)
    assert found("head.py") == codes


def test_of_files_that_are_read_together_each_tells_what_it_gives(project: Path) -> None:
    (project / "head.py").write_text(MODEL.format(last="Softmax"))
    (project / "train.py").write_text(SCRIPT)
    assert found(".") == {("GC404", "train.py", 5)}


@pytest.mark.parametrize(
    ("place", "main", "inner"),
    [
        ("engine.py", "main.py", ""),
        ("engine/loop.py", "main.py", ".loop"),
        ("engine/loop.py", "tools/main.py", ".loop"),
        ("engine.py", "tools/main.py", ""),
    ],
)
def test_a_loop_is_given_models_by_files_around_it(project: Path, place: str, main: str, inner: str) -> None:
    for file in (place, main):
        (project / file).parent.mkdir(exist_ok=True)
    (project / "head.py").write_text(MODEL.format(last="Softmax"))
    (project / place).write_text(LOOP)
    (project / main).write_text(MAIN.format(inner=inner))
    assert found(place) == {("GC401", place, 5)}


def test_an_object_that_a_framework_drives_is_known_by_who_built_it(project: Path) -> None:
    (project / "head.py").write_text(MODEL.format(last="Softmax"))
    (project / "lit.py").write_text(
        "import torch\nimport pytorch_lightning as pl\n\nclass Lit(pl.LightningModule):\n"
        "    def __init__(self, model):\n        super().__init__()\n        self.model = model\n\n"
        "    def training_step(self, batch, index):\n        x, y = batch\n"
        "        return torch.nn.functional.cross_entropy(self.model(x), y)\n"
    )
    main = "from head import Head\nfrom lit import Lit\n\nfit(Lit({}))\n"
    (project / "main.py").write_text(main.format("Head()"))
    assert found("lit.py") == {("GC401", "lit.py", 11)}
    (project / "main.py").write_text(main.format("Head().score"))
    assert found("lit.py") == set()


@pytest.mark.parametrize(("built", "line"), [("Head()", 8), ("Head().score", None)])
def test_a_factory_of_losses_is_asked_and_not_blamed(project: Path, built: str, line: int | None) -> None:
    (project / "head.py").write_text(MODEL.format(last="Softmax"))
    (project / "losses.py").write_text(
        "from torch import nn\n\ndef get_loss(name):\n    if name == 'ce':\n"
        "        return nn.CrossEntropyLoss()\n    raise ValueError(name)\n"
    )
    (project / "run.py").write_text(
        "import torch\nfrom head import Head\nfrom losses import get_loss\n\n"
        f"model, criterion = {built}, get_loss(args.loss)\n"
        "for x, y in loader:\n    out = model(x)\n    criterion(out, y).backward()\n"
    )
    assert found("run.py") == ({("GC401", "run.py", line)} if line else set())
    assert found("losses.py") == set()


def test_a_package_hands_on_what_its_files_define(project: Path) -> None:
    (project / "steps").mkdir()
    (project / "steps" / "loop.py").write_text(LOOP)
    (project / "steps" / "__init__.py").write_text("from .loop import epoch\n")
    (project / "head.py").write_text(MODEL.format(last="Softmax"))
    (project / "main.py").write_text(MAIN.replace("engine{inner}", "steps"))
    assert found("steps/loop.py") == {("GC401", "steps/loop.py", 5)}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("test_engine.py", MAIN),  # a test may try the loop on anything
        ("main.py", MAIN.replace("from engine{inner}", "from other")),
        ("main.py", MAIN.replace("Head(),", "nn.Sequential(Head(), nn.Linear(3, 3)),")),
        ("main.py", MAIN.replace("CrossEntropyLoss", "MSELoss")),
    ],
)
def test_others_are_not_asked_and_give_nothing_wrong(project: Path, name: str, text: str) -> None:
    (project / "engine.py").write_text(LOOP)
    (project / "head.py").write_text(MODEL.format(last="Softmax"))
    (project / name).write_text(text.format(inner=""))
    assert found("engine.py") == set()


DRIVE = """\
import torch

def fit(model, loader, criterion=torch.nn.{loss}()):
    for x, y in loader:
        criterion(model(x), y).backward()
"""


def notebook(*cells: str) -> str:
    return json.dumps(
        {"cells": [{"cell_type": "code", "source": cell} for cell in cells], "metadata": {}, "nbformat": 4}
    )


@pytest.mark.parametrize("also", ["", "\nother = nn.CrossEntropyLoss()"])
def test_a_model_that_a_notebook_hands_to_a_loss_is_told_in_its_cell(project: Path, also: str) -> None:
    (project / "drive.py").write_text(DRIVE.format(loss="CrossEntropyLoss"))
    hand = "from torch import nn\nfrom drive import fit as train{}\n\n"
    hand += "train(nn.Sequential(nn.Linear(4, 3){}), loader)"
    (project / "lesson.ipynb").write_text(notebook("x = 1", hand.format(also, ", nn.Softmax(1)")))
    assert found("lesson.ipynb") == {("GC401", "lesson.ipynb", 4 + bool(also))}
    (project / "lesson.ipynb").write_text(notebook("x = 1", hand.format(also, "")))
    assert found("lesson.ipynb") == set()


def test_models_that_end_alike_are_each_told(project: Path) -> None:
    (project / "drive.py").write_text(DRIVE.format(loss="NLLLoss"))
    head = "nn.Sequential(nn.Linear(4, 3), nn.LogSoftmax({}))"
    cells = [f"train({head.format(dim)}, loader)" for dim in ("dim=0", "dim=0")]
    (project / "lesson.ipynb").write_text(
        notebook("from torch import nn\nfrom drive import fit as train", *cells)
    )
    assert found("lesson.ipynb") == {("GC410", "lesson.ipynb", 1)}
    assert len(lint(["lesson.ipynb"], Config()).findings) == 2


@pytest.mark.parametrize(("last", "line"), [(", nn.Softmax(1)", 5), ("", None)])
def test_a_loss_among_other_things_that_a_module_makes(project: Path, last: str, line: int | None) -> None:
    (project / "drive.py").write_text(DRIVE.format(loss="MSELoss"))
    (project / "parts.py").write_text(
        "from torch import nn\n\ndef get_parts(size):\n    return {'criterion': nn.CrossEntropyLoss()}\n"
    )
    (project / "main.py").write_text(
        "from torch import nn\nfrom drive import fit as train\nfrom parts import get_parts\n\n"
        f"model = nn.Sequential(nn.Linear(4, 3){last})\nparts = get_parts(4)\n"
        "train(model, loader, parts['criterion'])\n"
    )
    assert found("main.py") == ({("GC401", "main.py", line)} if line else set())


@pytest.mark.parametrize("link", ["beside.py", "tools/beside.py"])
def test_a_link_that_leads_nowhere_is_passed_over(project: Path, link: str) -> None:
    (project / link).parent.mkdir(exist_ok=True)
    (project / link).symlink_to("gone.py")
    (project / "head.py").write_text(MODEL.format(last="Softmax"))
    (project / "train.py").write_text(SCRIPT)
    assert found("head.py") == {("GC404", "head.py", 17)}


def test_files_that_came_or_went_since_are_followed_anew(project: Path) -> None:
    (project / "head.py").write_text(MODEL.format(last="Softmax"))
    (project / "engine.py").write_text(LOOP)
    (project / "main.py").write_text(MAIN.format(inner=""))
    assert found("main.py") == {("GC401", "main.py", 6)}
    (project / "head.py").rename(project / "heads.py")
    assert found("main.py") == set()
    (project / "main.py").write_text(MAIN.format(inner="").replace("from head ", "from heads "))
    assert found("main.py") == {("GC401", "main.py", 6)}


def test_a_name_that_leads_back_to_itself_is_one_out_of_sight(project: Path) -> None:
    (project / "layers").mkdir()
    (project / "layers" / "__init__.py").write_text("from .pooling import *\n")
    (project / "layers" / "pooling.py").write_text("from layers import pooled  # softmax\n")
    (project / "head.py").write_text(MODEL.format(last="Softmax"))
    (project / "main.py").write_text(
        "from torch import nn\nfrom head import Head\nfrom layers import pooled\n\n"
        "head, criterion = Head(), nn.CrossEntropyLoss()\nfor x, y in loader:\n"
        "    x = pooled(x)\n    criterion(head(x), y).backward()\n"
    )
    assert found("main.py") == {("GC401", "main.py", 8)}
