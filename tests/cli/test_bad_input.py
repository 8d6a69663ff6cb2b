"""Whatever is wrong with the input: one clear line, the documented exit code, and the rest still reported."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import SOURCE


def test_a_path_that_does_not_exist(gradclinic):
    ended = gradclinic("lint", "nowhere.py")
    assert ended.code == 2
    assert ended.error_line == "gradclinic: nowhere.py: there is no such file or directory"


def test_an_empty_directory_says_so_and_passes(gradclinic, tmp_path):
    (tmp_path / "empty").mkdir()
    ended = gradclinic("lint", "empty")
    assert ended.code == 0
    assert ended.error_line == "gradclinic: no Python files in empty; nothing was checked"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"x = (\n", "broken.py:1:5: not valid Python: '(' was never closed"),
        (b"def f(:\n    pass\n", "broken.py:1:7: not valid Python: invalid syntax"),
        (b"name = '\xe9'\n", "broken.py: cannot be read: not UTF-8 text"),
        (b"# -*- coding: martian -*-\nname = '\xe9'\n", "broken.py: cannot be read: not UTF-8 text"),
        (b"x = 1\0\n", "broken.py: cannot be read: not Python source (it contains null bytes)"),
        (b"\x7fELF\x02\x01\x01\0\0\xff", "broken.py: cannot be read: "),
        (b"(" * 5000 + b")" * 5000, "broken.py"),
    ],
)
def test_a_file_that_cannot_be_judged_is_named_and_the_rest_is_reported(
    gradclinic, sick_script, tmp_path, content, said
):
    (tmp_path / "broken.py").write_bytes(content)
    alone = gradclinic("lint", "broken.py")
    assert alone.code == 2
    assert alone.error_line.startswith(f"gradclinic: {said}")

    together = gradclinic("lint", ".")
    assert together.code == 1
    assert together.out.startswith("train.py:12:5: error GC109")
    assert together.error_line == alone.error_line


def test_the_encoding_of_a_package_that_is_not_here_is_read_as_text(gradclinic, sick_script, tmp_path):
    script = tmp_path / "train.py"
    script.write_text("# -*- coding: future_fstrings -*-\n" + script.read_text())
    ended = gradclinic("lint", "train.py")
    assert ended.code == 1
    assert ended.out.startswith("train.py:13:5: error GC109")


def test_a_problem_is_in_the_json_document_too(gradclinic, tmp_path):
    (tmp_path / "broken.py").write_text("x = (\n")
    document = json.loads(gradclinic("lint", "broken.py", "--format", "json").out)
    assert document["problems"] == ["broken.py:1:5: not valid Python: '(' was never closed"]
    assert document["summary"]["files"] == 0


def test_an_empty_file_is_fine(gradclinic, tmp_path):
    (tmp_path / "empty.py").touch()
    assert gradclinic("lint", "empty.py").code == 0


def test_a_directory_that_cannot_be_written_to(gradclinic, sick_script):
    ended = gradclinic("lint", "train.py", "--output", "missing/report.json")
    assert ended.code == 2
    assert "cannot write the report to missing/report.json" in ended.error_line


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["lint", "--select", "GC999"], "'GC999' selects no rule"),
        (["lint", "--ignore", "clip-after-stop"], "did you mean clip-after-step?"),
        (["lint", "--format", "xml"], "invalid choice: 'xml'"),
        (["lint", "--jobs", "none"], "none is not a number of processes"),
        (["lint", "--nonsense"], "unrecognized arguments: --nonsense"),
        (["lint", "--statistics", "--format", "json"], "--statistics is text"),
        (["lint", "-", "--fix"], "standard input cannot be fixed in place"),
        (["explain", "GC999"], "no rule is called 'GC999'"),
        (["explain", "clip-after-stop"], "did you mean clip-after-step?"),
        (["demo", "nobody"], "no patient is called 'nobody'"),
        (["lnt"], "did you mean `gradclinic lint`?"),
        (["xyzzy"], "the commands are "),
        (["--nonsense"], "unrecognized arguments: --nonsense"),
    ],
)
def test_wrong_usage_is_one_line_that_says_what_to_do(gradclinic, words, said):
    ended = gradclinic(*words)
    assert ended.code == 2
    assert ended.out == ""
    assert ended.error_line.startswith("gradclinic: ")
    assert said in ended.error_line


def test_no_command_shows_the_commands(gradclinic):
    ended = gradclinic()
    assert ended.code == 2
    assert "lint" in ended.err
    assert "explain" in ended.err


def _with_faulty_judge(directory: Path) -> Path:
    shutil.copytree(SOURCE / "gradclinic", directory / "gradclinic")
    engine = directory / "gradclinic" / "engine.py"
    engine.write_text(engine.read_text().replace("def judge(", "def judge(*args): 1 / 0\ndef _unused("))
    return directory


def test_a_fault_of_its_own_is_one_line_and_tells_how_to_see_more(gradclinic, sick_script, tmp_path):
    package = _with_faulty_judge(tmp_path / "elsewhere")
    ended = gradclinic("lint", "train.py", package=package)
    assert ended.code == 2
    assert ended.error_line.startswith(
        "gradclinic: train.py: internal fault, ZeroDivisionError: division by zero"
    )
    assert "at engine.py:" in ended.error_line
    assert "GRADCLINIC_DEBUG=1" in ended.error_line
    assert "Traceback" in gradclinic("lint", "train.py", package=package, env={"GRADCLINIC_DEBUG": "1"}).err


def test_an_interrupt_is_one_line(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-m", "gradclinic", "lint", "-"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # A shell may have started the tests with interrupts ignored, which children inherit.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        assert process.stdin is not None
        # More than a pipe holds: once it is written, the command has begun to read.
        process.stdin.write(b"#" * 1_000_000)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate()
    assert process.returncode == 2
    assert err == b"gradclinic: interrupted after 0 of 1 files\n"


def test_an_interrupt_leaves_no_worker_behind(tmp_path):
    program = "import torch\n" + "\n".join(f"x{n} = torch.rand({n})" for n in range(400))
    for number in range(400):
        (tmp_path / f"file{number}.py").write_text(f"{program}\nloss.backward()\noptimizer.step()\n")
    with subprocess.Popen(
        [sys.executable, "-m", "gradclinic", "lint", "--jobs", "2", "."],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        _wait_until(lambda: len(_in_group(process.pid)) > 2)
        os.killpg(process.pid, signal.SIGINT)
        try:
            _wait_until(lambda: not _in_group(process.pid))
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        _, err = process.communicate()
    assert b"gradclinic: interrupted after" in err


def _wait_until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def _in_group(group: int) -> list[int]:
    """The processes of it that run, by what the system tells of each."""
    found: list[int] = []
    for file in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it ended meanwhile
            state, _, of = file.read_text().rpartition(")")[2].split()[:3]
            found += [int(file.parent.name)] if int(of) == group and state != "Z" else []
    return found
