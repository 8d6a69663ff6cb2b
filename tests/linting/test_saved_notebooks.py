"""Notebooks that were saved as Python files with their commands: `!pip install`, `%cd`, `%%time`."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradclinic.config import Config
from gradclinic.linting import lint

SAVED = """\
!pip install transformers
%cd /content
import torch
import torch.nn.functional as F

def prepare(name):
    !mkdir -p {name}
    return name

model = torch.nn.Linear(3, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
!nvidia-smi
"""


def test_the_commands_are_passed_over_and_lines_keep_their_numbers(tmp_path: Path) -> None:
    (tmp_path / "saved.py").write_text(SAVED)
    diagnosis = lint([str(tmp_path / "saved.py")], Config())
    assert not diagnosis.problems
    assert [(f.code, f.location.line) for f in diagnosis.findings if f.location] == [("GC101", 14)]


@pytest.mark.parametrize(
    "broken", ["!pip install torch\ndef (:\n", "x = !ls\nimport torch\nloss.backward(\n"]
)
def test_what_is_no_python_even_without_them_is_still_said_to_be_none(tmp_path: Path, broken: str) -> None:
    (tmp_path / "broken.py").write_text(f"import torch\n{broken}")
    (problem,) = lint([str(tmp_path / "broken.py")], Config()).problems
    assert "not valid Python" in problem
