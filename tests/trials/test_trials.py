"""Real-world faults: the sick twin is named first, the healthy twin is left alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rules.scripts import run_report
from tests.trials.twins import Trial, trials

each_trial = pytest.mark.parametrize("trial", [pytest.param(t, id=t.name) for t in trials()])


NOT_YET_NAMED: set[str] = set()
"""Faults a run does not see yet. Held to the letter, so that the list shrinks with every rule."""


@each_trial
def test_the_fault_is_named_first(trial: Trial, tmp_path: Path) -> None:
    findings = run_report(trial.sick, tmp_path)["findings"]
    named = [finding["code"] for finding in findings][:1] == [trial.finding]
    assert named is (trial.name not in NOT_YET_NAMED)


@each_trial
def test_the_healthy_twin_is_left_alone(trial: Trial, tmp_path: Path) -> None:
    findings = run_report(trial.well, tmp_path)["findings"]
    assert [f for f in findings if f["severity"] != "info"] == []
