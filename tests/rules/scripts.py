"""Runs example scripts the way a user would, without paying for `import torch` each time."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any

from gradclinic.engine import judge
from gradclinic.facts import Source
from gradclinic.static import observe_source
from tests.forks import server

TIME_LIMIT = 100


def codes(source: Source, script: str, folder: Path) -> list[str]:
    """What is found, without the symptoms that a finding already explains."""
    return codes_by_lint(script) if source is Source.STATIC else codes_by_run(script, folder)


def codes_by_lint(script: str) -> list[str]:
    return [
        finding.code for finding in judge([observe_source(script, "train.py")]) if not finding.explained_by
    ]


def codes_by_run(script: str, folder: Path) -> list[str]:
    return [f["code"] for f in run_report(script, folder)["findings"] if not f.get("explained_by")]


def run_report(script: str, folder: Path) -> dict[str, Any]:
    """The JSON document of `gradclinic run` on this script, in a process of its own."""
    (folder / "train.py").write_text(script)
    # gloo hangs now and then where nobody watches; what hangs because of us hangs every time.
    assert _ends(folder) or _ends(folder), f"the script did not end within {TIME_LIMIT} s"
    report = folder / "report.json"
    assert report.exists(), (folder / "printed.txt").read_text()
    document: dict[str, Any] = json.loads(report.read_text())
    assert not [problem for problem in document["problems"] if "internal fault" in problem]
    return document


def _ends(folder: Path) -> bool:
    child = server.Process(target=_run, args=(str(folder),))
    child.start()
    child.join(TIME_LIMIT)
    if child.exitcode is None:
        child.kill()
        child.join()
        return False
    return True


def _run(folder: str) -> None:
    import torch

    from gradclinic.cli import main

    os.chdir(folder)
    torch.set_num_threads(1)
    with (
        open("printed.txt", "w") as printed,
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(printed),
    ):
        main(["run", "--format", "json", "--output", "report.json", "train.py"])
