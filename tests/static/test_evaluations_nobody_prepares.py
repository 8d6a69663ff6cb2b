"""One loop that trains or tests by a flag, in a project in which nobody ever calls eval()."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradclinic.config import Config
from gradclinic.linting import lint

TRAINER = """\
import torch
from torch import nn
from nets import Net

class Trainer:
    def __init__(self, train_data, test_data):
        self.model = Net()
        self.train_data, self.test_data = train_data, test_data
        self.optimizer = torch.optim.Adam(self.model.parameters())
        self.criterion = nn.CrossEntropyLoss()

    def train(self, epoch):
        self.iteration(epoch, self.train_data)

    def test(self, epoch):
        self.iteration(epoch, self.test_data, train=False)

    def iteration(self, epoch, loader, train=True):
        total = 0.0
        for x, y in loader:
            loss = self.criterion(self.model(x), y)  # here
            if train:
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            total += loss.item()
        print(epoch, total)
"""
NETS = """\
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 4), {layer}, nn.Linear(4, 2))

    def forward(self, x):
        return self.layers(x)
"""
MAIN = """\
from trainer import Trainer

trainer = Trainer(first, second)
for epoch in range(9):
    trainer.train(epoch)
    {prepared}
    trainer.test(epoch)
"""


def told(project: Path, layer: str = "nn.Dropout()", prepared: str = "pass") -> set[str]:
    (project / "pyproject.toml").touch()
    (project / "trainer.py").write_text(TRAINER)
    (project / "nets.py").write_text(NETS.format(layer=layer))
    (project / "main.py").write_text(MAIN.format(prepared=prepared))
    diagnosis = lint([str(project / "trainer.py")], Config())
    assert not diagnosis.problems
    line = next(n for n, text in enumerate(TRAINER.splitlines(), 1) if "# here" in text)
    assert {finding.location.line for finding in diagnosis.findings if finding.location} <= {line}
    return {finding.code for finding in diagnosis.findings}


def test_a_test_in_train_mode_is_told_where_no_file_calls_eval(tmp_path: Path) -> None:
    assert told(tmp_path) == {"GC702", "GC703"}


@pytest.mark.parametrize(
    ("layer", "prepared"),
    [
        ("nn.ReLU()", "pass"),
        ("nn.Dropout()", "trainer.model.eval()"),
        ("nn.Dropout()", "set_mode(trainer)"),
        ("nn.Dropout()", "trainer.model.train(trainer.phase == 'train')"),
        ("nn.Dropout()", "trainer.model.train(trainer.is_train)"),
        ("nn.Dropout()", "getattr(trainer.model, 'eval')()"),
        ("nn.Dropout()", "trainer.model.training = on"),
    ],
)
def test_the_mode_is_left_to_those_who_set_it(tmp_path: Path, layer: str, prepared: str) -> None:
    if "set_mode" in prepared:
        (tmp_path / "modes.py").write_text("def set_mode(trainer):\n    trainer.model.train(False)\n")
    assert "GC702" not in told(tmp_path, layer, prepared)


CHOOSES = """\
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def forward(self, x):
        {forward}
"""
SCRIPT = """\
import torch
from torch import nn
from nets import Net

net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(9):
    net.train()
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()
    net.eval()
    for x, y in test_loader:
        print((net(x).argmax(1) == y).float().mean().item())
"""


@pytest.mark.parametrize(
    ("forward", "expected"),
    [
        ("with torch.set_grad_enabled(self.training): return self.layer(x)", set()),
        ("if self.training: return self.layer(x)\n        with torch.no_grad(): return self.layer(x)", set()),
        ("return self.layer(x)", {"GC703"}),
    ],
)
def test_a_model_may_choose_by_its_mode_to_keep_no_graph(
    tmp_path: Path, forward: str, expected: set[str]
) -> None:
    (tmp_path / "nets.py").write_text(CHOOSES.format(forward=forward))
    (tmp_path / "script.py").write_text(SCRIPT)
    diagnosis = lint([str(tmp_path / "script.py")], Config())
    assert {finding.code for finding in diagnosis.findings} == expected
