"""Run a training script as it is and say what is wrong with its training.

The script runs in this process, unmodified, with its arguments, and prints what it always prints;
the diagnosis goes to stderr or to --output when it ends, however it ends.

    gradclinic run train.py --lr 0.1
    gradclinic run --steps 100 -m package.train

Exit codes: that of the script if it fails by itself, else 1 for findings at or above --fail-on,
2 for wrong usage, 0 otherwise.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import defaultdict
from importlib.util import find_spec

from gradclinic.commands._shared import add_shared_arguments, config_for, emit, exit_code
from gradclinic.config import Config
from gradclinic.engine import judge
from gradclinic.errors import UsageError
from gradclinic.facts import Observation
from gradclinic.findings import Diagnosis, Finding, Summary
from gradclinic.ignores import without_ignored
from gradclinic.judged import judged
from gradclinic.source_text import UnreadableSource, read_source


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_shared_arguments(parser)
    parser.add_argument(
        "--steps", type=_positive, metavar="N", help="end the script cleanly after N optimizer steps"
    )
    parser.add_argument(
        "-m",
        dest="module",
        nargs=argparse.REMAINDER,
        metavar="MODULE",
        help="run a module, as python -m does",
    )
    parser.add_argument(
        "script", nargs=argparse.REMAINDER, metavar="SCRIPT", help="the script, followed by its own arguments"
    )


def run(args: argparse.Namespace) -> int:
    is_module = args.module is not None
    words = args.module if is_module else args.script
    if not words:
        raise UsageError("nothing to run: give a script, or -m and a module")
    if find_spec("torch") is None:
        raise UsageError("run needs PyTorch; install torch where gradclinic is installed")
    from gradclinic.runtime import Recording
    from gradclinic.runtime.script import Program, execute

    target, *arguments = words
    if not is_module and not os.path.isfile(target):
        what = "is a directory" if os.path.isdir(target) else "does not exist"
        raise UsageError(f"{target} {what}; name the script as you would to python")
    config = config_for(args, [os.getcwd() if is_module else target])
    program = Program(target, is_module)
    recording = Recording(own=[program.own], step_limit=args.steps)
    started = time.monotonic()
    code = execute(program, arguments, recording)
    summary = Summary(steps=recording.steps, elapsed_s=round(time.monotonic() - started, 3))
    diagnosis = _diagnosis(target, recording.observation(), config, summary, recording.problems)
    sys.stdout.flush()
    emit(diagnosis, args, sys.stderr)
    return code or exit_code(diagnosis, config)


def _diagnosis(
    target: str, observation: Observation, config: Config, summary: Summary, problems: tuple[str, ...]
) -> Diagnosis:
    findings = _wanted(judge([observation], config.codes()), config)
    looked_at = judged([observation], findings)
    return Diagnosis(
        command="run",
        target=target,
        findings=findings,
        judged=looked_at.topics,
        checklist=looked_at.checklist,
        summary=summary,
        problems=problems,
    )


def _wanted(findings: tuple[Finding, ...], config: Config) -> tuple[Finding, ...]:
    """Without what the configuration or a comment silences in the file a finding lies in."""
    by_file: defaultdict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        by_file[finding.location.path if finding.location else ""].append(finding)
    kept: list[Finding] = []
    for path, here in by_file.items():
        apply = [finding for finding in here if finding.code in config.codes(path)]
        try:
            kept.extend(without_ignored(apply, read_source(path).text))
        except (OSError, UnreadableSource, SyntaxError):
            kept.extend(apply)
    return tuple(finding for finding in findings if finding in kept)


def _positive(word: str) -> int:
    if not word.isdecimal() or int(word) < 1:
        raise argparse.ArgumentTypeError(f"{word!r} is not a number of steps")
    return int(word)
