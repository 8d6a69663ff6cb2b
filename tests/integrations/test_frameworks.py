"""Training that a framework runs: a fault is named by its code, a healthy run is left in peace."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import SOURCE

PROGRAMS = Path(__file__).parent / "programs"
SICK = [
    ("lightning_trainer", "eval-mode", "GC701"),
    ("lightning_trainer", "part", "GC301"),
    ("fabric_loop", "clip-late", "GC109"),
    ("fabric_loop", "eval-mode", "GC701"),
    ("accelerate_loop", "clip-late", "GC109"),
    ("accelerate_loop", "eval-mode", "GC701"),
    ("transformers_trainer", "clip", "GC604"),
    ("transformers_trainer", "part", "GC301"),
]
ALL = sorted({program for program, _, _ in SICK})


@pytest.mark.parametrize(("program", "fault", "code"), SICK)
def test_run_names_what_is_wrong_in_an_unmodified_script(gradclinic, tmp_path, program, fault, code):
    assert _run(gradclinic, tmp_path, program, fault)["findings"][0]["code"] == code


@pytest.mark.parametrize("program", [*ALL, "lightning_accumulating"])
def test_run_finds_nothing_in_a_healthy_script(gradclinic, tmp_path, program):
    report = _run(gradclinic, tmp_path, program, "none")
    assert report["findings"] == []
    assert report["summary"]["steps"] >= 64
    passed = {check["check"] for check in report["judged"] if check["state"] == "pass"}
    assert {"gradients cleared", "step after backward", "what the optimizers hold"} <= passed


@pytest.mark.parametrize(("program", "fault", "code"), SICK[::2])
def test_the_callback_names_what_is_wrong(tmp_path, program, fault, code):
    told = _with_callback(program, fault, tmp_path)
    assert f" {code} " in told
    assert f"{program}.py:" in told


@pytest.mark.parametrize("program", ALL)
def test_the_callback_says_nothing_of_a_healthy_run(tmp_path, program):
    assert "GC" not in _with_callback(program, "none", tmp_path).replace("GCC", "")


def _run(gradclinic, folder: Path, program: str, fault: str) -> dict:
    options = ("--format", "json", "--output", "report.json", "--no-store", "--fail-on", "never")
    ended = gradclinic("run", *options, str(PROGRAMS / f"{program}.py"), fault)
    assert ended.code == 0, ended.err
    assert "observer failed" not in ended.err
    return json.loads((folder / "report.json").read_text(encoding="utf-8"))


def _with_callback(program: str, fault: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, str(PROGRAMS / f"{program}.py"), fault, "--checkup"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr
