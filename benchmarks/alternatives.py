"""The trials, sick and healthy, put to other tools that can look at a script nobody changed.

    python -m benchmarks.alternatives [--every N]

gradclinic has to name the very fault, first. The others are asked less: to say anything at all of the sick
twin. What a tool says of the healthy twin counts against it. Anomaly mode is what `detect_anomaly=True` of
Lightning's Trainer switches on; torcheck is told of `model` and the optimizer where the script builds it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from gradclinic.cli import main as gradclinic_main
from gradclinic.rules import all_rules
from tests.trials.twins import Trial, trials

ONCE = ("torch._dynamo", "gradclinic.commands.lint", "gradclinic.commands.run", "gradclinic.runtime.script")
"""Imported before the first child is forked, which then has them."""
FAILED = 1
Verdict = Callable[[Path], str]
"""What a tool says of a script: a code, any other word, or nothing."""
JSON = ("--format", "json", "--fail-on", "never", "--output")


def lint(script: Path) -> str:
    report = script.with_suffix(".lint.json")
    _apart(lambda: gradclinic_main(["lint", *JSON, str(report), str(script)]))
    return _first(report)


def run(script: Path) -> str:
    report = script.with_suffix(".run.json")
    _apart(lambda: gradclinic_main(["run", "--no-store", *JSON, str(report), str(script)]))
    return _first(report)


def torchfix(script: Path) -> str:
    return "said something" if f"{script.name}:" in _torchfix(script.parent) else ""


@cache
def _torchfix(folder: Path) -> str:
    """All scripts of a folder at once: most of its time is its start."""
    words = [sys.executable, "-m", "torchfix", "--select", "ALL", str(folder)]
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout


def anomaly_mode(script: Path) -> str:
    def train() -> None:
        torch.autograd.set_detect_anomaly(True)
        runpy.run_path(str(script), run_name="__main__")

    return "raised" if _apart(train) else ""


def torcheck(script: Path) -> str:
    import torcheck as checker

    def train() -> None:
        build = torch.optim.Optimizer.__init__

        def built(self: torch.optim.Optimizer, *args: Any, **kwargs: Any) -> None:
            build(self, *args, **kwargs)
            frame: Any = sys._getframe()
            while frame.f_code.co_filename != str(script):
                frame = frame.f_back
            checker.register(self)
            if isinstance(model := frame.f_globals.get("model"), torch.nn.Module):
                checker.add_module(model, changing=True, check_nan=True, check_inf=True)

        torch.optim.Optimizer.__init__ = built  # type: ignore[method-assign]
        runpy.run_path(str(script), run_name="__main__")

    return "raised" if _apart(train) else ""


TOOLS: dict[str, Verdict] = {
    "gradclinic lint": lint,
    "gradclinic run": run,
    "TorchFix": torchfix,
    "anomaly mode": anomaly_mode,
    "torcheck": torcheck,
}
NEEDED = {"TorchFix": "torchfix", "torcheck": "torcheck"}
TOOLS = {name: tool for name, tool in TOOLS.items() if find_spec(NEEDED.get(name, "torch")) is not None}


def _first(report: Path) -> str:
    findings = json.loads(report.read_text(encoding="utf-8"))["findings"] if report.exists() else []
    return next((found["code"] for found in findings if found["severity"] != "info"), "")


def _apart(work: Callable[[], object]) -> bool:
    """Do it in a child that has imported torch already; True if it failed."""
    child = os.fork()
    if child == 0:
        code = FAILED
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), 1)
            os.dup2(nowhere.fileno(), 2)
        with contextlib.suppress(BaseException):
            work()
            code = 0
        os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0


def write(trial: Trial, folder: Path) -> tuple[Path, Path]:
    scripts = folder / "sick" / f"{trial.name}.py", folder / "well" / f"{trial.name}.py"
    for script, text in zip(scripts, (trial.sick, trial.well), strict=True):
        script.parent.mkdir(exist_ok=True)
        script.write_text(text, encoding="utf-8")
    return scripts


def put_to(trial: Trial, sick: Path, well: Path) -> dict[str, tuple[bool, bool]]:
    """For each tool: did it see the fault, did it accuse the healthy twin?"""
    seen = {}
    for name, verdict in TOOLS.items():
        said, wrongly = verdict(sick), verdict(well)
        named = said == trial.finding if name.startswith("gradclinic") else bool(said)
        seen[name] = (named, bool(wrongly))
    return seen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--every", type=int, default=1, help="take every n-th trial only")
    chosen = trials()[:: parser.parse_args().every]
    for module in ONCE:
        import_module(module)
    all_rules()
    saw, accused = dict.fromkeys(TOOLS, 0), dict.fromkeys(TOOLS, 0)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        scripts = [write(trial, Path(folder)) for trial in chosen]
        for trial, twins in zip(chosen, scripts, strict=True):
            verdicts = put_to(trial, *twins)
            marks = ""
            for name, (named, wrongly) in verdicts.items():
                saw[name] += named
                accused[name] += wrongly
                marks += f"  {'x' if named else '.'}{'!' if wrongly else ' '}"
            print(f"{trial.name:<36} {trial.finding}{marks}", flush=True)
    for name in TOOLS:
        print(f"{name:<16} {saw[name]:>3} of {len(chosen)} faults, {accused[name]} healthy twins accused")


if __name__ == "__main__":
    main()
