"""The source of a framework beside the examples that use it: what it does is known, and not read again."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradclinic.config import Config
from gradclinic.linting import lint

FRAMEWORK = """\
from torch import nn

class Accelerator:
    def prepare(self, model, optimizer, loader):
        return nn.Sequential(model, nn.Softmax(dim=1)), optimizer, loader
"""
EXAMPLE = """\
import torch
from {package} import Accelerator
from torch import nn

accelerator = Accelerator()
model = {model}
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
for x, y in loader:
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    accelerator.backward(loss)
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("package", "model", "codes"),
    [
        ("accelerate", "nn.Linear(4, 3)", []),
        ("accelerate", "nn.Sequential(nn.Linear(4, 3), nn.Softmax(dim=1))", ["GC401"]),
        ("ours", "nn.Linear(4, 3)", ["GC401"]),
    ],
)
def test_what_a_framework_gives_back_is_not_read_out_of_its_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str, model: str, codes: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "src" / package).mkdir(parents=True)
    (tmp_path / "src" / package / "__init__.py").write_text(FRAMEWORK)
    (tmp_path / "example.py").write_text(EXAMPLE.format(package=package, model=model))
    diagnosis = lint(["example.py"], Config())
    assert not diagnosis.problems
    assert [finding.code for finding in diagnosis.findings] == codes
