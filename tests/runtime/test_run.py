"""`gradclinic run` as a user calls it: the script behaves as under python, and a diagnosis follows."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.forks import server

SOURCE = Path(__file__).parents[2] / "src"

TRAINING = """\
import atexit, os, sys
import torch
from torch import nn

atexit.register(lambda: print("at exit", sys.argv[1:]))
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
print(__name__, os.path.basename(__file__), sys.argv[1:], os.path.basename(sys.path[0]))
for step in range(10):
    x = torch.randn(8, 4)
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    {after}
print("done")
{end}
"""
RUN = ("-m", "gradclinic", "run")
CLIP = "nn.utils.clip_grad_norm_(model.parameters(), 1.0)"


def started(folder: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(SOURCE), "PYTHONUNBUFFERED": "1"},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # A shell may have started the tests with interrupts ignored, which children inherit.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def run_by_itself(folder: Path, *words: str) -> tuple[int, str, str]:
    """In a process as a shell would start it."""
    process = started(folder, *words)
    out, err = process.communicate()
    return process.returncode, out, err


def run(folder: Path, *words: str) -> tuple[int | None, str, str]:
    """In a process that has torch imported already, which is most of what starting one costs."""
    child = server.Process(target=_run, args=(str(folder), ["run", *words]))
    child.start()
    child.join()
    return child.exitcode, (folder / "stdout").read_text(), (folder / "stderr").read_text()


def _run(folder: str, words: list[str]) -> None:
    from gradclinic.cli import main

    os.chdir(folder)
    with (
        open("stdout", "w") as out,
        open("stderr", "w") as err,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        code = main(words)
    sys.exit(code)


@pytest.fixture
def script(tmp_path: Path):  # type: ignore[no-untyped-def]
    def write(after: str = "", end: str = "", name: str = "train.py") -> Path:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(TRAINING.format(after=after, end=end))
        return path

    return write


def test_a_sick_script_prints_as_ever_and_is_diagnosed_on_stderr(tmp_path: Path, script) -> None:  # type: ignore[no-untyped-def]
    script(after=CLIP)
    code, out, err = run_by_itself(tmp_path, *RUN, "train.py", "--lr", "3", "-m", "x")

    assert out.splitlines() == [
        f"__main__ train.py ['--lr', '3', '-m', 'x'] {tmp_path.name}",
        "done",
        "at exit ['--lr', '3', '-m', 'x']",
    ]
    assert err.startswith("train.py:15:")
    assert "GC109" in err
    assert code == 1


def test_a_healthy_module_ends_in_zero(tmp_path: Path, script) -> None:  # type: ignore[no-untyped-def]
    script(name="package/train.py")
    code, out, err = run(
        tmp_path, "--format", "json", "--output", "report.json", "-m", "package.train", "--fast"
    )

    assert out.splitlines()[0] == f"__main__ train.py ['--fast'] {tmp_path.name}"
    assert (code, err) == (0, "")
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["findings"] == []
    assert report["summary"]["steps"] == 10


def test_a_script_that_raises_shows_its_own_traceback_and_keeps_its_code(tmp_path: Path, script) -> None:  # type: ignore[no-untyped-def]
    script(after=CLIP, end="nn.functional.mse_loss(model(x), None)")
    code, _, err = run_by_itself(tmp_path, *RUN, "train.py")
    _, _, without = run_by_itself(tmp_path, "train.py")

    assert err.startswith(without)
    assert "GC109" in err.removeprefix(without)
    assert code == 1


@pytest.mark.parametrize(
    ("end", "code", "says"),
    [
        ("sys.exit(7)", 7, ""),
        ("sys.exit('no more data')", 1, "no more data\n"),
        ("sys.exit(0)", 0, ""),
    ],
)
def test_a_script_that_exits_keeps_its_code(tmp_path: Path, script, end: str, code: int, says: str) -> None:  # type: ignore[no-untyped-def]
    script(end=end)
    ended, out, err = run(tmp_path, "--quiet", "train.py")

    assert (ended, err) == (code, says)
    assert out.endswith("done\n")


def test_findings_fail_a_script_that_exits_with_zero(tmp_path: Path, script) -> None:  # type: ignore[no-untyped-def]
    script(after=CLIP, end="sys.exit()")
    assert run(tmp_path, "--quiet", "train.py")[0] == 1


def test_after_so_many_steps_the_script_ends_cleanly(tmp_path: Path, script) -> None:  # type: ignore[no-untyped-def]
    script(after="print(step)")
    code, out, _ = run(tmp_path, "--steps", "3", "--format", "json", "--output", "report.json", "train.py")

    assert code == 0
    assert out.splitlines()[1:] == ["0", "1"]
    assert json.loads((tmp_path / "report.json").read_text())["summary"]["steps"] == 3


def test_an_interrupted_script_is_still_diagnosed(tmp_path: Path, script) -> None:  # type: ignore[no-untyped-def]
    script(after=CLIP, end="import time; time.sleep(60)")
    process = started(tmp_path, *RUN, "--quiet", "train.py")
    assert process.stdout is not None
    while process.stdout.readline() != "done\n":
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()

    assert process.returncode == 130
    assert err.startswith("train.py:15:")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ((), "nothing to run"),
        (("missing.py",), "missing.py does not exist"),
        (("package",), "package is a directory"),
        (("-m", "no_such_module"), "no module no_such_module"),
        (("--steps", "0", "train.py"), "'0' is not a number of steps"),
    ],
)
def test_wrong_usage_is_one_line(tmp_path: Path, words: tuple[str, ...], complaint: str) -> None:
    (tmp_path / "package").mkdir()
    code, out, err = run(tmp_path, *words)

    assert (code, out) == (2, "")
    assert complaint in err
    assert err.count("\n") == 1


def test_a_script_that_is_not_python_fails_as_under_python(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import torch\nfor step in range(3)\n    pass\n")
    code, _, err = run(tmp_path, "train.py")
    assert code == 1
    assert "SyntaxError: expected ':'" in err
    assert "internal fault" not in err
