"""Fixes: applied whole, shown as a diff, and never a file that no longer parses."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from gradclinic.findings import Edit, Fix
from gradclinic.linting.fixing import apply_fixes
from gradclinic.source_text import SourceText
from tests.conftest import SOURCE

MAX_NORM_RULE = '''
"""A clip spells out its norm in full.

## What it finds
A toy.
"""

from collections.abc import Iterator

from gradclinic.facts import EventKind, Source, Tape
from gradclinic.findings import Edit, Finding, Fix, Severity
from gradclinic.rules._rule import Rule

rule = Rule("GC199", "toy", Severity.ERROR, since="0.1.0", sources=(Source.STATIC,), topic="toy")


@rule.check
def check(tape: Tape) -> Iterator[Finding]:
    for clip in tape.of_kind(EventKind.CLIP):
        where = clip.where
        line = open(where.path).read().splitlines()[where.line - 1]
        start = line.find("1.0)")
        if start >= 0:
            edit = Edit(where.path, where.line, start, where.line, start + 3, "max_norm=2.0")
            yield rule.finding("toy", clip, fix=Fix("spell it out", (edit,), safe=SAFE))
'''


@pytest.fixture
def fixing(gradclinic, tmp_path):
    """The command with a rule more, whose fix is safe or not."""

    def run(*words: str, safe: bool = True):
        package = tmp_path / f"package-{safe}"
        if not package.exists():
            shutil.copytree(SOURCE / "gradclinic", package / "gradclinic")
            rule = package / "gradclinic" / "rules" / "order" / "gc199_toy.py"
            rule.write_text(MAX_NORM_RULE.replace("SAFE", str(safe)).lstrip())
        return gradclinic("lint", "train.py", "--select", "GC199", *words, package=package)

    return run


def test_fix_changes_the_file_once_and_the_second_time_nothing(fixing, sick_script: Path):
    before = sick_script.read_text()
    ended = fixing("--fix")
    assert ended.code == 0
    assert ended.err == "gradclinic: fixed 1 of 1 finding\n"
    assert sick_script.read_text() == before.replace("1.0)", "max_norm=2.0)")
    fixed = sick_script.read_text()
    assert fixing("--fix").code == 0
    assert sick_script.read_text() == fixed


def test_diff_shows_the_change_and_makes_none(fixing, sick_script: Path):
    before = sick_script.read_text()
    ended = fixing("--diff")
    assert ended.code == 1
    assert "-    nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n" in ended.out
    assert "+    nn.utils.clip_grad_norm_(model.parameters(), max_norm=2.0)\n" in ended.out
    assert sick_script.read_text() == before


def test_an_unsafe_fix_waits_to_be_asked_for(fixing, sick_script: Path):
    before = sick_script.read_text()
    ended = fixing("--fix", safe=False)
    assert ended.code == 1
    assert "--unsafe-fixes would fix 1 more" in ended.err
    assert sick_script.read_text() == before
    assert fixing("--fix", "--unsafe-fixes", safe=False).code == 0
    assert sick_script.read_text() != before


def test_windows_newlines_survive(fixing, sick_script: Path):
    sick_script.write_bytes(sick_script.read_text().replace("\n", "\r\n").encode())
    fixing("--fix")
    text = sick_script.read_bytes()
    assert b"max_norm=2.0)\r\n" in text
    assert text.count(b"\n") == text.count(b"\r\n")


SOURCE_TEXT = SourceText("a = 1\nb = 2\n")


def _fix(line: int, column: int, end: int, text: str) -> Fix:
    return Fix("", (Edit("x.py", line, column, line, end, text),), safe=True)


def test_fixes_that_overlap_wait_for_the_next_round():
    text, applied = apply_fixes(
        SOURCE_TEXT, [_fix(1, 4, 5, "10"), _fix(1, 0, 5, "c = 3"), _fix(2, 4, 5, "20")]
    )
    assert (text, applied) == ("a = 10\nb = 20\n", 2)


def test_a_fix_that_breaks_the_syntax_is_left_out():
    text, applied = apply_fixes(SOURCE_TEXT, [_fix(1, 4, 5, "("), _fix(2, 4, 5, "20")])
    assert (text, applied) == ("a = 1\nb = 20\n", 1)


def test_a_fix_of_two_edits_is_applied_whole_or_not_at_all():
    both = Fix("", (Edit("x.py", 1, 0, 2, 0, ""), Edit("x.py", 3, 0, 3, 0, "a = 1\n")), safe=True)
    assert apply_fixes(SOURCE_TEXT, [both]) == ("b = 2\na = 1\n", 1)
    assert apply_fixes(SOURCE_TEXT, [_fix(1, 4, 5, "7"), both]) == ("a = 7\nb = 2\n", 1)
