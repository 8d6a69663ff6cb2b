"""One rule is one file: all its parts are there, and a new file is all a new rule takes."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gradclinic.facts import Source
from gradclinic.rules import Rule, all_rules, family, matching, rule_names, rules_for
from gradclinic.rules._rule import SECTIONS
from tests.conftest import SOURCE

ROOT = SOURCE.parent
RULES = pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.code)


@RULES
def test_a_rule_has_all_its_parts(rule: Rule):
    assert re.fullmatch(r"GC\d{3}", rule.code)
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", rule.name)
    assert re.fullmatch(r"\d+\.\d+\.\d+", rule.since)
    assert rule.sources
    assert rule.topic
    assert rule.checks
    assert "bad" in rule.bad
    assert "good" in rule.good
    assert list(rule.sections()) == list(SECTIONS)
    assert all(rule.sections().values())
    assert rule.summary.endswith(".")
    assert family(rule)


@RULES
def test_a_rule_file_is_called_what_the_rule_is_called(rule: Rule):
    assert rule.module.rpartition(".")[2] == f"{rule.code}_{rule.name}".lower().replace("-", "_")


@RULES
def test_a_rule_speaks_only_of_codes_of_the_right_shape(rule: Rule):
    for code in (*rule.explains, *rule.subsumes):
        assert re.fullmatch(r"GC\d{3}", code)
        assert code != rule.code


@pytest.mark.parametrize("source", Source)
def test_the_rules_of_a_source_are_found_without_running_the_others(source: Source):
    assert rules_for(source) == tuple(rule for rule in all_rules() if source in rule.sources)
    assert rule_names() == {rule.code: rule.name for rule in all_rules()}


def test_codes_and_names_are_unique_and_select_themselves():
    names = [rule.name for rule in all_rules()]
    assert len(set(names)) == len(names)
    for rule in all_rules():
        assert matching(rule.code) == matching(rule.name) == {rule.code}


def test_the_rule_pages_are_current(tmp_path: Path):
    _document(tmp_path, SOURCE)
    fresh = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.glob("*.md")}
    kept = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "rules").glob("*.md")}
    assert kept == fresh, "run `make docs-rules`"


NEW_RULE = '''
"""A step is taken at all.

## What it finds
Any step.

## Why it hurts
It does not.

## What to do
Nothing.

## Not the fix
Nothing.

## Known limits
None.
"""

from collections.abc import Iterator

from gradclinic.facts import EventKind, Source, Tape
from gradclinic.findings import Finding, Severity
from gradclinic.rules._rule import Rule

rule = Rule("GC198", "step-taken", Severity.WARNING, since="0.1.0", sources=(Source.STATIC,), topic="steps")

BAD = "optimizer.step()"
GOOD = "pass"


@rule.check
def taken(tape: Tape) -> Iterator[Finding]:
    for step in tape.of_kind(EventKind.STEP):
        yield rule.finding("a step is taken", step)
'''


def test_a_new_file_is_all_a_new_rule_takes(gradclinic, sick_script, tmp_path: Path):
    package = tmp_path / "package"
    shutil.copytree(SOURCE / "gradclinic", package / "gradclinic")
    (package / "gradclinic" / "rules" / "order" / "gc198_step_taken.py").write_text(NEW_RULE.lstrip())

    found = json.loads(gradclinic("lint", "train.py", "--format", "json", package=package).out)["findings"]
    assert [(f["code"], f["location"]["line"]) for f in found] == [("GC109", 12), ("GC198", 11)]
    assert gradclinic("lint", "train.py", "--select", "step-taken", package=package).code == 0
    assert gradclinic("explain", "step-taken", package=package).out.startswith("# GC198 step-taken\n")
    assert "GC198 step-taken" in gradclinic("explain", package=package).out
    _document(tmp_path / "pages", package)
    assert "GC198" in (tmp_path / "pages" / "README.md").read_text(encoding="utf-8")
    assert (tmp_path / "pages" / "GC198-step-taken.md").exists()


def _document(directory: Path, package: Path) -> None:
    script = ROOT / "scripts" / "document_rules.py"
    environment = {**os.environ, "PYTHONPATH": str(package)}
    subprocess.run([sys.executable, str(script), str(directory)], env=environment, check=True)
