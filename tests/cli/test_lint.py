"""`gradclinic lint` as it is used from a shell."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import SOURCE

HEALTHY = "import torch\n\nprint(torch.zeros(1))\n"


def test_the_first_line_names_place_code_and_name(gradclinic, sick_script):
    ended = gradclinic("lint", "train.py")
    assert ended.code == 1
    assert ended.out.splitlines()[0] == "train.py:12:5: error GC109 clip-after-step"
    assert "backward:10 step:11 clip:12" in ended.out
    assert "fix" in ended.out
    assert ended.err == ""


def test_a_healthy_file_ends_with_zero_and_one_line(gradclinic, tmp_path):
    (tmp_path / "fine.py").write_text(HEALTHY)
    ended = gradclinic("lint", "fine.py")
    assert (ended.code, ended.out, ended.err) == (0, "nothing found in 1 file\n", "")


def test_the_current_directory_is_the_default(gradclinic, sick_script):
    assert "train.py:12:5" in gradclinic("lint").out


def test_standard_input_is_read_with_a_dash(gradclinic, sick_script):
    ended = gradclinic("lint", "-", stdin=sick_script.read_bytes())
    assert ended.code == 1
    assert ended.out.startswith("<stdin>:12:5: error GC109")


def test_quiet_is_one_line_per_finding_and_silence_for_health(gradclinic, sick_script, tmp_path):
    (tmp_path / "fine.py").write_text(HEALTHY)
    (line,) = gradclinic("lint", "--quiet", "train.py").out.splitlines()
    assert line.startswith("train.py:12:5: error GC109 clip-after-step: ")
    assert gradclinic("lint", "--quiet", "fine.py").out == ""


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--fail-on", "never"], 0),
        (["--fail-on", "info"], 1),
        (["--ignore", "GC109"], 0),
        (["--ignore", "clip-after-step"], 0),
        (["--ignore", "GC1"], 0),
        (["--ignore", "GC501,gc109"], 0),
        (["--select", "GC109"], 1),
        (["--select", "GC5"], 0),
        (["--select", "GC5", "--select", "clip-after-step"], 1),
    ],
)
def test_rules_are_chosen_by_code_name_or_prefix(gradclinic, sick_script, words, code):
    assert gradclinic("lint", "train.py", *words).code == code


@pytest.mark.parametrize(
    ("comment", "silenced"),
    [
        ("# gradclinic: ignore[GC109]", True),
        ("# gradclinic: ignore[clip-after-step]", True),
        ("# gradclinic: ignore[GC1]  as agreed", True),
        ("# gradclinic: ignore", True),
        ("# gradclinic: ignore[GC101]", False),
        ("# gradclinic: ignored", False),
    ],
)
def test_a_comment_silences_a_rule_on_its_line(gradclinic, sick_script, comment, silenced):
    sick_script.write_text(sick_script.read_text().rstrip("\n") + f"  {comment}\n")
    assert gradclinic("lint", "train.py").code == (0 if silenced else 1)


def test_a_comment_speaks_for_a_statement_of_several_lines(gradclinic, sick_script):
    text = sick_script.read_text().replace(
        "clip_grad_norm_(model.parameters(), 1.0)",
        "clip_grad_norm_(\n        model.parameters(),\n        1.0,  # gradclinic: ignore[GC109]\n    )",
    )
    sick_script.write_text(text)
    assert gradclinic("lint", "train.py").code == 0


def test_the_same_words_in_a_string_silence_nothing(gradclinic, sick_script):
    text = sick_script.read_text().replace("1.0)\n", "1.0), '# gradclinic: ignore[GC109]'\n")
    sick_script.write_text(text)
    assert gradclinic("lint", "train.py").code == 1


def test_directories_are_searched_but_not_environments_or_hidden_ones(gradclinic, sick_script, tmp_path):
    text = sick_script.read_text()
    places = [".hidden", "node_modules/x", "lib/site-packages/x", "env/lib", "pkg/deep"]
    for place in places:
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "loop.py").write_text(text)
    (tmp_path / "env" / "pyvenv.cfg").touch()
    found = json.loads(gradclinic("lint", ".", "--format", "json").out)["findings"]
    assert sorted(finding["location"]["path"] for finding in found) == ["pkg/deep/loop.py", "train.py"]


def test_a_file_that_is_named_is_read_wherever_it_is(gradclinic, sick_script, tmp_path):
    (tmp_path / ".hidden").mkdir()
    sick_script.rename(tmp_path / ".hidden" / "script")
    assert gradclinic("lint", ".hidden/script").code == 1


def test_many_processes_say_the_same_as_one(gradclinic, sick_script, tmp_path):
    for number in range(150):
        (tmp_path / f"part{number}.py").write_text(sick_script.read_text() if number % 7 == 0 else HEALTHY)
    one, two = (gradclinic("lint", ".", "--jobs", jobs, "--quiet") for jobs in ("1", "2"))
    assert one == two
    assert len(one.out.splitlines()) == 23


def test_statistics_count_each_rule(gradclinic, sick_script, tmp_path):
    (tmp_path / "second.py").write_text(sick_script.read_text())
    ended = gradclinic("lint", "--statistics")
    assert ended.code == 1
    assert ended.out.splitlines()[0].split() == ["2", "error", "GC109", "clip-after-step"]
    (tmp_path / "broken.py").write_text("x = (")
    assert "broken.py:1:5: not valid Python" in gradclinic("lint", "--statistics").error_line


def test_the_report_goes_to_a_file(gradclinic, sick_script, tmp_path):
    ended = gradclinic("lint", "train.py", "--format", "json", "--output", "report.json")
    assert (ended.code, ended.out) == (1, "")
    assert json.loads((tmp_path / "report.json").read_text())["findings"][0]["code"] == "GC109"


def test_a_byte_order_mark_and_an_encoding_cookie_are_honoured(gradclinic, sick_script, tmp_path):
    text = sick_script.read_text()
    (tmp_path / "bom.py").write_bytes(b"\xef\xbb\xbf" + text.encode())
    (tmp_path / "latin.py").write_bytes("# -*- coding: latin-1 -*-\n# é\n".encode("latin-1") + text.encode())
    found = json.loads(gradclinic("lint", "bom.py", "latin.py", "--format", "json").out)
    assert [f["location"]["path"] for f in found["findings"]] == ["bom.py", "latin.py"]
    assert found["problems"] == []


def test_a_closed_pipe_is_not_an_error(tmp_path, sick_script):
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    command = f"{sys.executable} -m gradclinic explain | head -n 1"
    done = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, capture_output=True, env=environment, check=False
    )
    assert done.stderr == b""
    assert done.stdout.count(b"\n") == 1


def test_paths_are_shown_as_they_were_given(gradclinic, sick_script: Path):
    assert gradclinic("lint", str(sick_script), "--quiet").out.startswith(f"{sick_script}:12:5")
