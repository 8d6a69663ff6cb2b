"""Correct programs that resemble faulty ones: no rule may warn about any of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rules.scripts import run_report

SCRIPTS = sorted((Path(__file__).parent / "healthy").glob("*.py"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_healthy_script_raises_no_warning(script: Path, tmp_path: Path) -> None:
    report = run_report(script.read_text(encoding="utf-8"), tmp_path)
    assert [f for f in report["findings"] if f["severity"] != "info"] == []
    assert report["summary"]["steps"] > 0
