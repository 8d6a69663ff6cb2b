"""Gradients that another file has scaled: who clips them must know."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradclinic.config import Config
from gradclinic.linting.examine import examine

UPDATER = """
import torch

class Updater:
    def __init__(self, network, limit):
        self.network, self.limit = network, limit
        self.optimizer = torch.optim.AdamW(network.parameters())

    def step(self, *, grad_scaler=None):
        if self.limit:
            torch.nn.utils.clip_grad_norm_(self.network.parameters(), self.limit)
        if grad_scaler is not None:
            grad_scaler.step(self.optimizer)
            grad_scaler.update()
        else:
            self.optimizer.step()
"""
ENGINE = """
import torch
from updater import Updater

def run(network, loader, scaler):
    updater = Updater(network, 1.0)
    for x, y in loader:
        updater.optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(network(x), y)
        if scaler is not None:
            scaler.scale(loss).backward()
        else:
            loss.backward()
        updater.step(grad_scaler=scaler)
"""
CLIP = "            torch.nn.utils"


def told(folder: Path, **files: str) -> list[str]:
    for name, text in {"updater": UPDATER, "engine": ENGINE, **files}.items():
        (folder / f"{name}.py").write_text(text)
    path = str(folder / "updater.py")
    return [finding.code for finding in examine(path, Config(), frozenset([path])).findings]


def test_what_is_clipped_was_scaled_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    assert told(tmp_path) == ["GC501"]


def test_layers_have_scales_too(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    assert told(tmp_path, layers='def norm(x, p):\n    return x * p["scale"]\n') == ["GC501"]


@pytest.mark.parametrize(
    "files",
    [
        {"updater": UPDATER.replace(CLIP, f"            grad_scaler.unscale_(self.optimizer)\n{CLIP}")},
        {"engine": ENGINE.replace("updater.step(", "scaler.unscale_(updater.optimizer); updater.step(")},
        {"engine": ENGINE.replace("scaler.scale(loss).backward()", "loss.backward()")},
        {"engine": ENGINE.replace("from updater import Updater", "Updater = find('updater')")},
        {"helpers": "def ready(scaler, optimizer):\n    scaler.unscale_(optimizer)\n"},
        {"helpers": "def share(scaler):\n    return scaler.state_dict()['scale']\n"},
        {"updater": UPDATER.replace(CLIP, f"            prepare(self.optimizer, grad_scaler)\n{CLIP}")},
        {"updater": f"import accelerate\n{UPDATER}"},
    ],
)
def test_the_scale_may_be_out(tmp_path: Path, files: dict[str, str]) -> None:
    (tmp_path / "pyproject.toml").touch()
    assert told(tmp_path, **files) == []


def test_nobody_knows_where_the_project_ends(tmp_path: Path) -> None:
    assert told(tmp_path) == []
