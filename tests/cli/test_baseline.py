"""An old code base is adopted with its findings, and only new ones are reported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest


@pytest.fixture
def adopted(gradclinic, sick_script: Path) -> Path:
    ended = gradclinic("lint", "--write-baseline", "known.json")
    assert (ended.code, ended.out, ended.err) == (0, "", "gradclinic: wrote 1 finding to known.json\n")
    return sick_script


def test_what_is_known_is_left_out_wherever_its_line_has_gone(gradclinic, adopted: Path):
    assert gradclinic("lint", "--baseline", "known.json").out == "nothing found in 1 file\n"
    adopted.write_text("# a comment more\n\n" + adopted.read_text().replace("    ", "\t"))
    assert gradclinic("lint", "--baseline", "known.json").code == 0


def test_another_one_is_reported_though_it_reads_the_same(gradclinic, adopted: Path):
    text = adopted.read_text()
    adopted.write_text(f"{text}\n{text}")
    ended = gradclinic("lint", "--baseline", "known.json", "--quiet")
    assert ended.code == 1
    assert len(ended.out.splitlines()) == 1


def test_another_file_and_another_line_are_new(gradclinic, adopted: Path):
    (adopted.parent / "other.py").write_text(adopted.read_text())
    adopted.write_text(adopted.read_text().replace("1.0)", "5.0)"))
    lines = gradclinic("lint", "--baseline", "known.json", "--quiet").out.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["other.py", "train.py"]


def test_the_file_can_be_read_and_paths_start_at_its_directory(gradclinic, adopted: Path):
    (found,) = json.loads((adopted.parent / "known.json").read_text())["findings"]
    line = "nn.utils.clip_grad_norm_(model.parameters(), 1.0)"
    assert found == {"path": "train.py", "code": "GC109", "line": line, "count": 1}
    given = str(adopted)
    assert gradclinic("lint", given, "--baseline", str(adopted.parent / "known.json")).code == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "--write-baseline makes one"),
        ("[]", "is not a baseline"),
        ('{"schema": 7}', "is a baseline of schema 7"),
    ],
)
def test_what_is_no_baseline_is_said_in_one_line(gradclinic, sick_script: Path, text, words):
    if text is not None:
        (sick_script.parent / "known.json").write_text(text)
    ended = gradclinic("lint", "--baseline", "known.json")
    assert ended.code == 2
    assert words in ended.error_line
