"""Fixes from the command line: applied, shown as a diff, or waiting to be asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradclinic.findings import Edit
from gradclinic.linting.fixing import apply_edits
from gradclinic.source_text import SourceText

STEP = "    optimizer.step()\n"
CLIP = "    nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n"


def test_fix_changes_the_file_once_and_the_second_time_nothing(gradclinic, sick_script: Path):
    before = sick_script.read_text()
    ended = gradclinic("lint", "--fix")
    assert ended.code == 0
    assert ended.err == "gradclinic: fixed 1 of 1 finding\n"
    assert sick_script.read_text() == before.replace(STEP + CLIP, CLIP + STEP)
    fixed = sick_script.read_text()
    assert gradclinic("lint", "--fix").code == 0
    assert sick_script.read_text() == fixed


def test_diff_shows_the_change_and_makes_none(gradclinic, sick_script: Path):
    before = sick_script.read_text()
    ended = gradclinic("lint", "--diff")
    assert ended.code == 1
    assert f"+{CLIP} {STEP}-{CLIP}" in ended.out
    assert ended.err == "gradclinic: would fix 1 of 1 finding\n"
    assert sick_script.read_text() == before


def test_an_unsafe_fix_waits_to_be_asked_for(gradclinic, sick_script: Path):
    before = sick_script.read_text().replace(CLIP, f"    print(loss)\n{CLIP}")
    sick_script.write_text(before)
    ended = gradclinic("lint", "--fix")
    assert ended.code == 1
    assert "--unsafe-fixes would fix 1 more" in ended.err
    assert sick_script.read_text() == before
    assert gradclinic("lint", "--fix", "--unsafe-fixes").code == 0
    assert sick_script.read_text() != before


def test_windows_newlines_survive(gradclinic, sick_script: Path):
    before = sick_script.read_text().replace("\n", "\r\n").encode()
    sick_script.write_bytes(before)
    gradclinic("lint", "--fix")
    text = sick_script.read_bytes()
    assert sorted(text.splitlines(keepends=True)) == sorted(before.splitlines(keepends=True))
    assert text.endswith(STEP.replace("\n", "\r\n").encode())


SOURCE_TEXT = SourceText("a = 1\nb = 2\n")


def _edit(line: int, column: int, end: int, text: str) -> Edit:
    return Edit("x.py", line, column, line, end, text)


@pytest.mark.parametrize(
    ("edits", "text"),
    [
        ([_edit(1, 4, 5, "10"), _edit(2, 4, 5, "20")], "a = 10\nb = 20\n"),
        ([Edit("x.py", 1, 0, 2, 0, ""), Edit("x.py", 3, 0, 3, 0, "a = 1\n")], "b = 2\na = 1\n"),
        ([_edit(1, 4, 5, "10"), _edit(1, 0, 5, "c = 3")], None),
        ([_edit(1, 4, 5, "1")], None),
    ],
    ids=["two places", "moved lines", "overlapping", "no change"],
)
def test_edits_are_made_together_or_not_at_all(edits: list[Edit], text: str | None):
    after = apply_edits(SOURCE_TEXT, edits)
    assert (after.text if after else None) == text
