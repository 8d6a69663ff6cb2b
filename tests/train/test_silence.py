"""gradclinic finds nothing in loops that use TrainStep, in whatever way they do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.forks import free_port

ROOT = Path(__file__).parents[2]
SCRIPT = "tests/train/scripts/every_loop.py"


def gradclinic(*arguments: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "gradclinic", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": "src", "OMP_NUM_THREADS": "1", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_lint_is_silent_on_every_loop() -> None:
    lint = gradclinic("lint", "--fail-on", "info", SCRIPT)
    output, errors = lint.communicate()
    assert lint.returncode == 0, output + errors


@pytest.mark.parametrize("wrap", ["none", "DDP", "FSDP2"])
def test_run_is_silent_on_every_loop(wrap: str, tmp_path: Path) -> None:
    ranks = 1 if wrap == "none" else 2
    port = free_port()
    runs = [
        gradclinic(
            *("run", "--format", "json", "--output", str(tmp_path / f"{rank}.json"), SCRIPT, wrap),
            RANK=str(rank),
            LOCAL_RANK=str(rank),
            WORLD_SIZE=str(ranks),
            MASTER_ADDR="127.0.0.1",
            MASTER_PORT=port,
        )
        for rank in range(ranks)
    ]
    for run in runs:
        _, errors = run.communicate()
        assert run.returncode == 0, errors
    document = json.loads((tmp_path / "0.json").read_text())
    assert document["findings"] == []
    assert document["summary"]["steps"] > 300
