"""A loop that is spread over the files of a project is read as one, and told where its lines are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gradclinic.config import Config
from gradclinic.linting import lint

MAIN = """\
import torch
from torch import nn
from engine import train_one_epoch

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for epoch in range(3):
    train_one_epoch(model, optimizer, torch.randn(9, 8, 4))
"""
ENGINE = """\
from torch import nn

def train_one_epoch(model, optimizer, loader):
    for x in loader:
        loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
        CLEAR
        loss.backward()
        optimizer.step()
"""
SICK, HEALTHY = ENGINE.replace("CLEAR", "pass"), ENGINE.replace("CLEAR", "optimizer.zero_grad()")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").touch()

    def write(files: dict[str, str] | None = None, /, **modules: str) -> None:
        for name, text in {**(files or {}), **{f"{name}.py": text for name, text in modules.items()}}.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)

    return write


def found(*paths: str) -> list[str]:
    diagnosis = lint(paths, Config(), jobs=1)
    assert not diagnosis.problems
    return [f"{finding.location} {finding.code}" for finding in diagnosis.findings]


def test_the_fault_of_a_helper_is_told_in_its_file_and_once(project):
    project(main=MAIN, engine=SICK)
    assert found("main.py") == ["engine.py:7 GC101"]
    assert found(".") == ["engine.py:7 GC101"]
    project(engine=HEALTHY)
    assert found(".") == []


@pytest.mark.parametrize(
    ("line", "call"),
    [
        ("import engine", "engine.train_one_epoch"),
        ("import engine as e", "e.train_one_epoch"),
        ("from engine import train_one_epoch as run", "run"),
    ],
)
def test_however_it_is_imported(project, line, call):
    text = MAIN.replace("from engine import train_one_epoch", line)
    project(main=text.replace("    train_one_epoch(", f"    {call}("), engine=SICK)
    assert found("main.py") == ["engine.py:7 GC101"]


def test_packages_and_relative_imports_are_found(project):
    inside = os.path.join("pkg", "engine.py")
    project({"pkg/__init__.py": "", "pkg/engine.py": SICK}, main=MAIN.replace("engine", "pkg.engine"))
    assert found("main.py") == [f"{inside}:7 GC101"]
    project({"pkg/main.py": MAIN.replace("from engine", "from .engine")})
    assert found(os.path.join("pkg", "main.py")) == [f"{inside}:7 GC101"]


def test_a_step_taken_in_a_helper_shows_the_clip_that_follows_it(project):
    main = MAIN.replace("from engine import train_one_epoch", "from helpers import update").replace(
        "    train_one_epoch(model, optimizer, torch.randn(9, 8, 4))",
        "    loss = model(torch.randn(8, 4)).mean()\n    update(loss, optimizer)\n"
        "    nn.utils.clip_grad_norm_(model.parameters(), 1.0)",
    )
    helpers = (
        "def update(loss, optimizer):\n    optimizer.zero_grad()\n    loss.backward()\n    optimizer.step()\n"
    )
    project(main=main, helpers=helpers)
    assert found("main.py") == ["main.py:10 GC109"]


BASE = """\
class BaseTrainer:
    def __init__(self, model, optimizer):
        self.model, self.optimizer = model, optimizer

    def fit(self, loader):
        for x in loader:
            loss = self.loss(x)
            loss.backward()
            self.optimizer.step()
"""
CHILD = """\
import torch
from torch import nn
from base import BaseTrainer

class Trainer(BaseTrainer):
    def loss(self, x):
        CLEAR
        return nn.functional.mse_loss(self.model(x), x)

model = nn.Linear(4, 4)
Trainer(model, torch.optim.SGD(model.parameters(), lr=0.01)).fit(torch.randn(9, 8, 4))
"""


def test_a_trainer_is_read_with_the_class_it_derives_from(project):
    project(base=BASE, child=CHILD.replace("CLEAR", "pass"))
    assert found("child.py") == ["base.py:8 GC101"]
    project(child=CHILD.replace("CLEAR", "self.optimizer.zero_grad()"))
    assert found("child.py") == []


def test_a_comment_in_the_other_file_silences_it_there(project):
    project(main=MAIN, engine=SICK.replace("loss.backward()", "loss.backward()  # gradclinic: ignore[GC101]"))
    assert found("main.py") == []


STEPS = """\
from torch import nn

def finish(model, optimizer):
    optimizer.step()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
"""
LOOP = HEALTHY.replace("import nn\n", "import nn\nfrom .steps import finish\n").replace(
    "optimizer.step()", "finish(model, optimizer)"
)


def test_imports_of_an_imported_module_are_its_own(project):
    main = MAIN.replace("from engine", "from .steps import finish\nfrom .inner.loop")
    project({"pkg/main.py": main, "pkg/steps.py": STEPS, "pkg/inner/loop.py": LOOP})
    assert found("pkg/main.py") == []
    project({"pkg/inner/steps.py": STEPS})
    assert found("pkg/inner/loop.py") == ["pkg/inner/steps.py:5 GC109"]


def test_a_module_that_cannot_be_read_is_as_good_as_none(project):
    project(main=MAIN, engine="def train_one_epoch(:\n    loss.backward()\n")
    assert found("main.py") == []


def test_an_optimizer_that_is_given_the_loss_may_do_all_of_it(project):
    project(main="def fit(model, optim):\n    for x in range(9):\n        optim.step(model(x).mean())\n")
    assert found("main.py") == []


def test_a_star_brings_the_helper_too(project):
    starred = MAIN.replace("import train_one_epoch", "import *")
    project(main=starred, engine=SICK)
    assert found("main.py") == ["engine.py:7 GC101"]
    project(engine=HEALTHY)
    assert found("main.py") == []


CELLS = """\
import torch
from torch import nn

class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.readout = nn.Linear(4, 1)
        self.between = LAYER

    def forward(self, x):
        if x.dim() != 2:
            raise ValueError(x.shape)
        return self.readout(self.between(x)) + torch.autograd.Variable(torch.zeros(1))
"""
FORGETS = """\
import torch
from cells import Cell

model = Cell()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

def validate(loader):
    model.eval()
    with torch.no_grad():
        return sum(model(x).mean().item() for x in loader)

for epoch in range(3):
    for x in train_loader:
        optimizer.zero_grad()
        model(x).mean().backward()
        optimizer.step()
    print(validate(held_out))
"""


def test_the_class_of_a_model_says_whether_its_mode_matters(project):
    project(main=FORGETS, cells=CELLS.replace("LAYER", "nn.Dropout(0.1)"))
    assert found("main.py") == ["main.py:8 GC701"]
    project(cells=CELLS.replace("LAYER", "nn.ReLU()"))
    assert found("main.py") == []


def test_a_class_that_a_package_passes_on_is_found_where_it_stands(project):
    main = FORGETS.replace("from cells import Cell", "from cells import Unit as Cell")
    package = {"cells/__init__.py": "from .units import Cell as Unit\n"}
    project({"main.py": main, **package, "cells/units.py": CELLS.replace("LAYER", "nn.ReLU()")})
    assert found("main.py") == []


HEADS = """\
from torch import nn

class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.last = nn.Sequential(nn.Linear(4, 3), nn.LAST)

    def forward(self, x):
        return self.last(x)
"""
ADAPT = """\
from torch import nn, optim

def train_head(head, loader):
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.SGD(head.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        criterion(head(x), y).backward()
        optimizer.step()
"""
BUILDS = """\
from core import train_head
from heads import Head
from helpers import init_model

if __name__ == "__main__":
    train_head(init_model(Head(), restore=None), loader)
"""
HELPERS = "def init_model(net, restore):\n    net.apply(print)\n    return net.cuda()\n"


def test_a_model_is_followed_to_the_module_that_trains_it(project):
    core = {"core/__init__.py": "from .adapt import train_head\n", "core/adapt.py": ADAPT}
    project(core, main=BUILDS, helpers=HELPERS, heads=HEADS.replace("LAST", "Softmax(dim=1)"))
    assert found(".") == ["core/adapt.py:8 GC401"]
    project(heads=HEADS.replace("LAST", "Identity()"))
    assert found(".") == []


def test_a_model_that_a_run_before_has_saved_ends_as_it_did_then(project):
    project(saved=LOADS, adapting=ADAPT, heads=HEADS.replace("LAST", "Softmax(dim=1)"))
    assert found("saved.py") == ["adapting.py:8 GC401"]
    project(saved=LOADS.replace("Head()", "choose(args)"))
    assert found("saved.py") == []


LOADS = """\
import torch
from adapting import train_head
from heads import Head

if args.path:
    model = torch.load(args.path)
else:
    model = Head()
train_head(model, loader)
"""


def test_a_function_that_sets_the_rate_gives_its_optimizer_back(project):
    adapt = ADAPT.replace(
        "        optimizer.zero", "        optimizer = lr_scheduler(optimizer, 3)\n        optimizer.zero"
    )
    adapt = f"from helpers import lr_scheduler\n{adapt}"
    project(adapt=adapt)
    assert found("adapt.py") == []
    project(adapt=adapt.replace("optimizer.zero_grad()", "pass"))
    assert found("adapt.py") == ["adapt.py:10 GC101"]


VALIDATES = """
import torch
from torch import nn
from validate import *

model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(10):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    look_at(model, held_out)
"""
LOOKS = """
import torch

def look_at(model, held_out):
    model.eval()
    right = 0
    for x, y in held_out:
        right += (model(x).argmax(1) == y).sum().item()
    return right
"""


def test_an_evaluation_in_a_file_of_its_own_is_followed(project):
    project(main=VALIDATES, validate=LOOKS)
    assert found("main.py") == ["validate.py:8 GC703"]
    project(validate=LOOKS.replace("def look_at", "@torch.no_grad()\ndef look_at"))
    assert found("main.py") == []


@pytest.mark.parametrize(("last", "codes"), [("p.grad = None", []), ("print(p)", ["train.py:8 GC101"])])
def test_a_module_that_clears_gradients_by_hand_is_followed(last, codes, project):
    helper = f"def forget(model):\n    for p in model.parameters():\n        {last}\n    return 1\n"
    loop = SICK.replace("pass", "done = forget(model)")
    project(train=f"from helper import forget\n{loop}", helper=helper)
    assert found("train.py") == codes


@pytest.mark.parametrize(("base", "codes"), [("LambdaLR", ["train.py:8 GC112"]), ("object", [])])
def test_a_schedule_of_the_project_is_asked_whether_it_is_one_of_torchs(base, codes, project):
    loop = HEALTHY.replace("import nn", "import nn, optim\nfrom rates import WarmupCosineSchedule")
    loop = loop.replace("loader:", "loader:\n        schedule.step()")
    loop = loop.replace(
        "    for x",
        "    optimizer = optim.AdamW(model.parameters())\n"
        "    schedule = WarmupCosineSchedule(optimizer, warmup_steps=9, t_total=99)\n    for x",
    )
    rates = f"from torch.optim.lr_scheduler import LambdaLR\nclass WarmupCosineSchedule({base}):\n    pass\n"
    project(train=loop, rates=rates)
    assert found("train.py") == codes


BESIDE = """\
import torch
from torch import nn
from own.steps import run_step

def run(model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        loss = run_step(model, x, y).mean()
        loss.backward()
        optimizer.step()
"""
LOOKING_ON = """\
from torch.nn import functional as F
from own.parts import scores

def run_step(model, x, y):
    return F.cross_entropy(scores(model, x), y, reduction="none")
"""


@pytest.mark.parametrize(
    ("parts", "codes"),
    [
        ("def scores(model, x):\n    return model(x)\n", ["main.py:9 GC101"]),
        ("def scores(model, x):\n    model.zero_grad()\n    return model(x)\n", []),
        ("def scores(model, x):\n    model.update_and_clear()\n    return model(x)\n", []),
        ("import own.more\n\ndef scores(model, x):\n    return own.more.scores(model, x)\n", []),
        ("def others(model, x):\n    return model(x)\n", []),
    ],
)
def test_what_trains_nothing_wherever_it_leads_hides_nothing(parts, codes, project):
    files = {"own/__init__.py": "", "own/more.py": "", "own/steps.py": LOOKING_ON, "own/parts.py": parts}
    project(files, main=BESIDE)
    assert found("main.py") == codes


def test_what_a_package_passes_on_is_followed(project, tmp_path):
    """An evaluation in another file leaves the model in eval mode: the training loop is to be mended."""
    package = tmp_path / "scoring"
    package.mkdir()
    (package / "__init__.py").write_text("from .looking import look_at\n")
    (package / "looking.py").write_text(LOOKS.replace("def look_at", "@torch.no_grad()\ndef look_at"))
    imports = "from scoring import look_at\nfrom torchvision.models import resnet18"
    loop = VALIDATES.replace("from validate import *", imports)
    project(main=loop.replace("    model.train()\n", "").replace("Net()", "resnet18()"))
    assert found("main.py") == ["main.py:12 GC701"]
    project(main=loop)
    assert found("main.py") == []
