"""Every rule proves itself: BAD raises exactly it, GOOD raises nothing, through every source it claims."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradclinic.facts import Source
from gradclinic.rules import Rule, all_rules
from tests.rules.scripts import codes

SCRIPT_SOURCES = (Source.STATIC, Source.RUNTIME)


def is_case(script: str) -> bool:
    """Made for an experiment: it builds a case and trains nothing by itself."""
    return "def make(" in script


def examples(kind: str) -> list[object]:
    return [
        pytest.param(rule, source, script, id=f"{rule.code}-{source}-{name}")
        for rule in all_rules()
        for name, script in getattr(rule, kind).items()
        for source in SCRIPT_SOURCES
        if source in rule.sources and not is_case(script)
    ]


@pytest.mark.parametrize(("rule", "source", "script"), examples("bad"))
def test_the_sick_script_raises_exactly_its_rule(
    rule: Rule, source: Source, script: str, tmp_path: Path
) -> None:
    assert set(codes(source, script, tmp_path)) == {rule.code}


def healthy_examples() -> list[object]:
    """A healthy script is healthy for every reader, whichever sources its own rule claims."""
    return [
        pytest.param(source, script, id=f"{rule.code}-{source}-{name}")
        for rule in all_rules()
        if set(rule.sources) & set(SCRIPT_SOURCES)
        for name, script in rule.good.items()
        if not is_case(script)
        for source in SCRIPT_SOURCES
    ]


@pytest.mark.parametrize(("source", "script"), healthy_examples())
def test_the_healthy_script_raises_nothing(source: Source, script: str, tmp_path: Path) -> None:
    assert codes(source, script, tmp_path) == []
