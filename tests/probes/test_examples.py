"""Every rule found by probe proves itself: BAD raises exactly it, GOOD raises nothing."""

from __future__ import annotations

import json
from argparse import Namespace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from gradclinic.case import Case
from gradclinic.commands.probe import kind_names
from gradclinic.engine import judge
from gradclinic.facts import Source
from gradclinic.probes._budget import Budget
from gradclinic.rules import Rule, all_rules
from gradclinic.target import load_target

DEFAULTS = {"steps": None, "dim": 0, "parts": 4, "window": None, "html": None}


def kinds_for(rule: Rule) -> list[str]:
    """The experiments whose facts the rule reads."""
    return [
        kind
        for kind in kind_names()
        if set(rule.checks) & set(getattr(import_module(f"gradclinic.probes.{kind}"), "FACTS", ()))
    ]


def examples(word: str) -> list[Any]:
    return [
        pytest.param(rule, kind, script, id=f"{rule.code}-{name}")
        for rule in all_rules()
        if Source.PROBE in rule.sources
        for kind in kinds_for(rule)[:1]
        for name, script in getattr(rule, word).items()
        if "def make(" in script
    ]


def codes(kind: str, script: str, folder: Path) -> list[str]:
    file = folder / "case.py"
    file.write_text(script)
    module = import_module(f"gradclinic.probes.{kind}")
    target = f"{file}:make"
    steps = getattr(module, "STEPS", None)
    args = Namespace(**{**DEFAULTS, "steps": steps, "target": target})
    outcome = module.run(load_target(target, getattr(module, "ACCEPTS", (Case,))), args, Budget(60))
    json.dumps(outcome.measured(), allow_nan=False)
    assert outcome.conclusion.startswith(f"{kind}: ")
    assert "\n" not in outcome.conclusion
    return [finding.code for finding in judge([outcome.observation()]) if not finding.explained_by]


@pytest.mark.parametrize(("rule", "kind", "script"), examples("bad"))
def test_the_sick_case_raises_exactly_its_rule(rule: Rule, kind: str, script: str, tmp_path: Path) -> None:
    assert codes(kind, script, tmp_path) == [rule.code]


@pytest.mark.parametrize(("rule", "kind", "script"), examples("good"))
def test_the_healthy_case_raises_nothing(rule: Rule, kind: str, script: str, tmp_path: Path) -> None:
    assert codes(kind, script, tmp_path) == []
