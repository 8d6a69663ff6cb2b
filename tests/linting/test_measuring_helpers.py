"""A function of another file that measures a model, and leaves its mode and its gradients as they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradclinic.config import Config
from gradclinic.linting import lint

MEASURES = """\
def test_accuracy(model, loader):
    accuracy = 0
    for x, y in loader:
        accuracy += (model(x).argmax(1) == y).sum().item()
    return accuracy
"""
EPOCHS = """\
import torch
from torch import nn
from measuring import test_accuracy

model = nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.5))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(10):
    for x, y in train_loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    {before}
    with {quietly}:
        print(test_accuracy(model, test_loader))
    model.train()
"""
OPEN = "open('log')"


@pytest.mark.parametrize(
    ("before", "quietly", "codes"),
    [
        ("pass", OPEN, {"GC702", "GC703"}),
        ("model.eval()", OPEN, {"GC703"}),
        ("pass", "torch.no_grad()", {"GC702"}),
        ("model.eval()", "torch.no_grad()", set()),
    ],
)
def test_it_is_judged_by_who_calls_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str, quietly: str, codes: set[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "measuring.py").write_text(MEASURES)
    (tmp_path / "main.py").write_text(EPOCHS.format(before=before, quietly=quietly))
    diagnosis = lint(["main.py"], Config())
    assert not diagnosis.problems
    found = {(finding.code, str(finding.location)) for finding in diagnosis.findings}
    assert found == {(code, "measuring.py:4") for code in codes}
