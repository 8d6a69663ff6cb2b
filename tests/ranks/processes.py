"""Real processes for tests: commands as a user starts them, and ranks that need not import torch first."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.conftest import SOURCE, Ended
from tests.forks import free_port, server

PROGRAMS = Path(__file__).parent / "programs"
BIN = Path(sys.executable).parent
TIME_LIMIT = 90


def started(folder: Path, *words: str, **variables: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        words,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1", **variables},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def command(folder: Path, *words: str, **variables: str) -> Ended:
    with started(folder, *words, **variables) as process:
        try:
            out, err = process.communicate(timeout=TIME_LIMIT)
        finally:
            process.terminate()
    return Ended(process.returncode, out, err)


def run_command(folder: Path, *words: str, **variables: str) -> Ended:
    """`gradclinic run WORDS`, in a process as a shell would start it."""
    return command(folder, sys.executable, "-m", "gradclinic", "run", *words, **variables)


def on_each_rank(folder: Path, act: Callable[..., Any], *given: Any, ranks: int = 2) -> list[Ended]:
    """Call `act` in so many processes at once, with what torchrun puts into their environment."""
    # gloo hangs now and then where nobody watches; what hangs because of us hangs every time.
    children = _ended(folder, act, given, ranks) or _ended(folder, act, given, ranks)
    assert children, f"a rank hangs; it wrote {(folder / 'err-0').read_text()}"
    return [
        Ended(child.exitcode or 0, (folder / f"out-{rank}").read_text(), (folder / f"err-{rank}").read_text())
        for rank, child in enumerate(children)
    ]


def _ended(folder: Path, act: Callable[..., Any], given: Any, ranks: int) -> list[Any]:
    """The processes, once all have ended; none if one does not."""
    port = free_port()
    children = [
        server.Process(target=_as_rank, args=(str(folder), rank, ranks, port, act, given))
        for rank in range(ranks)
    ]
    for child in children:
        child.start()
    for child in children:
        child.join(TIME_LIMIT)
    hanging = [child for child in children if child.exitcode is None]
    for child in hanging:
        child.kill()
        child.join()
    return [] if hanging else children


def _as_rank(folder: str, rank: int, ranks: int, port: str, act: Callable[..., Any], given: Any) -> None:
    import torch

    os.chdir(folder)
    os.environ.update(
        RANK=str(rank),
        LOCAL_RANK=str(rank),
        WORLD_SIZE=str(ranks),
        LOCAL_WORLD_SIZE=str(ranks),
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=port,
        TORCHELASTIC_RUN_ID="test",
    )
    torch.set_num_threads(1)
    with (
        open(f"out-{rank}", "w") as out,
        open(f"err-{rank}", "w") as err,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        code = act(*given)
    sys.exit(code)


def run_on_ranks(folder: Path, *words: str) -> list[Ended]:
    """`gradclinic run WORDS` on two ranks, as `torchrun -m gradclinic run WORDS` starts it."""
    return on_each_rank(folder, _gradclinic, ["run", *words])


def _gradclinic(words: list[str]) -> int:
    from gradclinic.cli import main

    return main(words)


def run_program(name: str, folder: Path) -> dict[str, Any]:
    """The report on one of the programs, run on two ranks."""
    shutil.copy(PROGRAMS / f"{name}.py", folder)
    (folder / "train.py").write_text(
        f"import torch.distributed as dist\nfrom {name} import train\n"
        'dist.init_process_group("gloo")\ntrain()\ndist.barrier()\ndist.destroy_process_group()\n'
    )
    return report_of_ranks(folder, "train.py")


def report_of_ranks(folder: Path, *words: str) -> dict[str, Any]:
    ended = run_on_ranks(folder, "--format", "json", "--output", "report.json", *words)
    assert [(one.code, one.err) for one in ended] == [(0, "")] * len(ended)
    document: dict[str, Any] = json.loads((folder / "report.json").read_text())
    return document


def report_of(folder: Path, *words: str) -> dict[str, Any]:
    """The report of `gradclinic run WORDS` on a single process that starts others."""
    child = server.Process(target=_run_alone, args=(str(folder), words))
    child.start()
    child.join(TIME_LIMIT)
    report = folder / "report.json"
    assert report.exists(), (folder / "printed").read_text()
    document: dict[str, Any] = json.loads(report.read_text())
    return document


def _run_alone(folder: str, words: tuple[str, ...]) -> None:
    import torch

    os.chdir(folder)
    torch.set_num_threads(1)
    # A child of a fork server would start its own from there.
    multiprocessing.set_start_method("fork", force=True)
    with (
        open("printed", "w") as printed,
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(printed),
    ):
        code = _gradclinic(["run", "--format", "json", "--output", "report.json", *words])
    sys.exit(code)
