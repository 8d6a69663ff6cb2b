"""`gradclinic run -- COMMAND`: whatever the command starts is watched, and one diagnosis comes out."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

from gradclinic.processes.environment import BOOTSTRAP, watched
from tests.conftest import CLIPS_TOO_LATE
from tests.ranks.processes import BIN, command, run_command, started

RANKED = """\
import os, torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
model = DistributedDataParallel(nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(10):
    x = torch.randn(8, 4)
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
os.write(1, f"rank {dist.get_rank()}\\n".encode())
dist.barrier()
dist.destroy_process_group()
"""
TORCHRUN = (str(BIN / "torchrun"), "--standalone", "--nproc-per-node", "2")
REPORT = ("--format", "json", "--output", "report.json")


def test_ranks_that_torchrun_starts_make_one_report(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(RANKED)
    ended = run_command(tmp_path, *REPORT, "--", *TORCHRUN, "train.py")

    report = json.loads((tmp_path / "report.json").read_text())
    assert [(f["code"], f["location"]["line"], f["ranks"]) for f in report["findings"]] == [
        ("GC109", 15, [0, 1])
    ]
    assert (report["summary"]["steps"], report["summary"]["ranks"]) == (10, 2)
    assert sorted(ended.out.splitlines()) == ["rank 0", "rank 1"]
    assert ended.code == 1


def test_under_torchrun_the_first_rank_speaks_for_all_and_findings_are_no_crash(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(RANKED)
    ended = command(tmp_path, *TORCHRUN, "-m", "gradclinic", "run", "--quiet", "train.py")

    assert [line for line in ended.err.splitlines() if "GC" in line] == [
        "train.py:15: error GC109 clip-after-step: gradients are clipped after optimizer.step() has used them"
    ]
    assert "ChildFailedError" not in ended.err
    assert sorted(ended.out.splitlines()) == ["rank 0", "rank 1"]
    assert ended.code == 0


def test_a_process_that_is_killed_has_left_its_record(tmp_path: Path) -> None:
    """In a folder of its own, started by a shell, with the user's sitecustomize in force."""
    (tmp_path / "inner").mkdir()
    (tmp_path / "sitecustomize.py").write_text("import builtins; builtins.of_the_user = 'kept'")
    end = "print(of_the_user, flush=True)\nimport os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n"
    (tmp_path / "inner" / "train.py").write_text(CLIPS_TOO_LATE + end)
    inner = f"cd inner && PYTHONPATH=$PYTHONPATH:{tmp_path} exec {sys.executable} train.py"
    ended = run_command(tmp_path, "--quiet", "--", "sh", "-c", inner)

    assert ended.err.splitlines()[-1].startswith("inner/train.py:12: error GC109")
    assert ended.out == "kept\n"
    assert ended.code == 128 + signal.SIGKILL


def test_after_so_many_steps_the_processes_end_cleanly(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(CLIPS_TOO_LATE + "print('never')")
    ended = run_command(tmp_path, *REPORT, "--steps", "3", "--", sys.executable, "train.py")

    assert json.loads((tmp_path / "report.json").read_text())["summary"]["steps"] == 3
    assert ended.out == ""
    assert "Traceback" not in ended.err


def test_a_command_that_fails_keeps_its_code(tmp_path: Path) -> None:
    assert run_command(tmp_path, "--", "sh", "-c", "exit 7").code == 7


def test_a_command_that_does_not_train_is_told_so(tmp_path: Path) -> None:
    ended = run_command(tmp_path, "--quiet", "--", "echo", "hello")

    assert (ended.code, ended.out) == (0, "hello\n")
    assert ended.error_line == "gradclinic: no process of `echo hello` was seen to train"


def test_a_command_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    ended = run_command(tmp_path, "--", "no-such-launcher", "train.py")

    assert ended.code == 2
    assert "there is no command no-such-launcher" in ended.error_line


def test_a_request_to_end_reaches_the_command(tmp_path: Path) -> None:
    waiting = ("sh", "-c", "echo on; exec sleep 60")
    process = started(tmp_path, sys.executable, "-m", "gradclinic", "run", "--quiet", "--", *waiting)
    assert process.stdout is not None
    assert process.stdout.readline() == "on\n"
    process.terminate()
    process.communicate()

    assert process.returncode == 128 + signal.SIGTERM


def test_processes_without_torch_import_nothing_of_ours(tmp_path: Path) -> None:
    shown = "import sys; print('gradclinic' in sys.modules, [p for p in sys.path if 'bootstrap' in p])"
    environment = watched({}, tmp_path, None)
    assert command(tmp_path, sys.executable, "-c", shown, **environment).out == "False []\n"


def test_the_bootstrap_is_inert_where_nothing_is_watched(tmp_path: Path) -> None:
    shown = "import sys; print([finder for finder in sys.meta_path if 'Torch' in str(finder)])"
    assert command(tmp_path, sys.executable, "-c", shown, PYTHONPATH=str(BOOTSTRAP)).out == "[]\n"
