"""Run a training script as it is and say what is wrong with its training.

The script runs in this process, unmodified, with its arguments, and prints what it always prints;
the diagnosis goes to stderr or to --output when it ends, however it ends. After -- comes any
command that trains, a launcher say: all its Python processes are watched and diagnosed together.

    gradclinic run train.py --lr 0.1
    gradclinic run --steps 100 -m package.train
    gradclinic run --steps 20 --probe overfit,init,lr train.py
    gradclinic run -- torchrun --nproc-per-node 2 train.py
    torchrun --nproc-per-node 2 -m gradclinic run train.py

Exit codes: that of the script if it fails by itself, else 1 for findings at or above --fail-on,
2 for wrong usage, 0 otherwise. A rank that torchrun started itself fails for findings only if
--fail-on is given: torchrun would take the exit code for a crash.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from gradclinic.commands._diagnosing import diagnose
from gradclinic.commands._shared import add_shared_arguments, config_for, emit, exit_code
from gradclinic.config import Config
from gradclinic.errors import UsageError
from gradclinic.findings import Summary
from gradclinic.keeping import keep_diagnosis
from gradclinic.processes.environment import launched_rank, leave_alone, watched
from gradclinic.processes.gather import gather
from gradclinic.processes.launch import launch
from gradclinic.processes.meeting import Meeting
from gradclinic.processes.record import Record, record_folder, records, unwatched
from gradclinic.store.folder import files_of, new_run

if TYPE_CHECKING:
    from gradclinic.probes.outcome import Outcome
    from gradclinic.runtime import Recording
    from gradclinic.runtime.capture import Capture
    from gradclinic.runtime.script import Program

COMMAND = "--"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_shared_arguments(parser)
    parser.add_argument(
        "--steps", type=_positive, metavar="N", help="end the script cleanly after N optimizer steps"
    )
    parser.add_argument(
        "--probe",
        metavar="EXPERIMENTS",
        help="then make experiments on the first training step: overfit,init,lr,batch",
    )
    parser.add_argument(
        "--log",
        action="append",
        default=[],
        metavar="LOG[:WHERE]",
        help="write the numbers and alerts into tensorboard, wandb, mlflow or trackio too",
    )
    parser.add_argument("--no-store", action="store_true", help="keep nothing of the run in .gradclinic/")
    parser.add_argument(
        "--verbose", action="store_true", help="a line now and then on how the training goes"
    )
    parser.add_argument(
        "-m",
        dest="module",
        nargs=argparse.REMAINDER,
        metavar="MODULE",
        help="run a module, as python -m does",
    )
    parser.add_argument(
        "script",
        nargs=argparse.REMAINDER,
        metavar="SCRIPT",
        help="the script, followed by its own arguments; or -- and a command",
    )


def run(args: argparse.Namespace) -> int:
    # argparse cuts a module's arguments at --.
    words = args.script if args.module is None else [*args.module, *args.script]
    if not words or words == [COMMAND]:
        raise UsageError("nothing to run: give a script, -m and a module, or -- and a command")
    if args.probe and (words[0] == COMMAND or launched_rank() is not None):
        raise UsageError("--probe works on a script in one process; run it without the launcher")
    if args.module is None and words[0] == COMMAND:
        return _run_command(words[1:], args)
    if find_spec("torch") is None:
        raise UsageError("run needs PyTorch; install torch where gradclinic is installed")
    if args.module is None and not os.path.isfile(words[0]):
        what = "is a directory" if os.path.isdir(words[0]) else "does not exist"
        raise UsageError(f"{words[0]} {what}; name the script as you would to python")
    leave_alone()
    return _run_script(words, args) if launched_rank() is None else _run_as_rank(words, args)


def _run_command(command: Sequence[str], args: argparse.Namespace) -> int:
    if args.log:
        raise UsageError("--log takes a script; for a command, call gradclinic.watch(to=...) in its code")
    config = config_for(args, [os.getcwd()])
    started = time.monotonic()
    kept = _kept_in(command[0], args, config)
    with record_folder() as folder:
        code = launch(command, watched(os.environ, folder, args.steps, kept))
        told, problems = tuple(records(folder)), unwatched(folder)
    if not told and not problems and code == 0:
        problems = (f"no process of `{' '.join(command)}` was seen to train",)
    return _report(" ".join(command), told, config, args, code, started, problems, kept)


def _run_script(words: Sequence[str], args: argparse.Namespace) -> int:
    from gradclinic.commands._experiments import experiment
    from gradclinic.commands._keeper import Keeper
    from gradclinic.commands._live import live
    from gradclinic.commands._log import Log
    from gradclinic.runtime.script import execute

    program, recording, config = _prepared(words, args)
    kinds, capture = _experiments(args, recording)
    started, process = time.monotonic(), os.getpid()
    kept = _kept_in(words[0], args, config)
    keeper = Keeper(kept, recording, words, config)
    log = Log(args.log, recording, words[0], config)
    with record_folder() as folder:
        os.environ.update(watched(os.environ, folder, args.steps, kept))
        with live(args, words[0], recording, keeper.events):
            code = execute(program, words[1:], recording)
        if os.getpid() != process:
            # A child that the script forked has come to its end; its parent goes on and reports.
            return code
        own = Record(recording.observation(), recording.steps, recording.problems, final=True)
        told, problems = (own, *records(folder)), unwatched(folder)
    kept = keeper.finish(quiet=args.quiet)
    log.finish()
    outcomes, failures = experiment(kinds, capture, quiet=args.quiet) if kinds else ((), ())
    return _report(words[0], told, config, args, code, started, (*problems, *failures), kept, outcomes)


def _run_as_rank(words: Sequence[str], args: argparse.Namespace) -> int:
    """One of several ranks that a launcher started: the first diagnoses all, or one that fails."""
    from gradclinic.commands._keeper import Keeper
    from gradclinic.commands._log import Log
    from gradclinic.runtime.scribe import Scribe, rank_now
    from gradclinic.runtime.script import execute

    program, recording, config = _prepared(words, args)
    started, process = time.monotonic(), os.getpid()
    meeting = Meeting()
    kept = _kept_in(words[0], args, config)
    kept = kept and Path(meeting.agree(str(kept)))
    keeper = Keeper(kept, recording, words, config, rank_now)
    log = Log(args.log if meeting.rank == 0 else (), recording, words[0], config)
    os.environ.update(watched(os.environ, meeting.folder, args.steps, kept))
    scribe = Scribe(recording, meeting.folder)
    code = execute(program, words[1:], recording)
    scribe.finish()
    if os.getpid() != process:
        return code
    keeper.finish(quiet=args.quiet or not meeting.first_here)
    log.finish()
    meeting.leave()
    if code == 0 and meeting.first_here:
        meeting.wait_for_others()
    if (code == 0 and not meeting.first_here) or not meeting.claim():
        return code
    told, problems = tuple(records(meeting.folder)), unwatched(meeting.folder)
    meeting.close()
    if code == 0 and meeting.rank != 0:
        return code
    if meeting.here < meeting.size:
        problems = (*problems, f"{meeting.size - meeting.here} ranks on other machines were not seen")
    ended = _report(words[0], told, config, args, code, started, problems, kept)
    return ended if args.fail_on else code


def _prepared(words: Sequence[str], args: argparse.Namespace) -> tuple[Program, Recording, Config]:
    from gradclinic.runtime import Recording
    from gradclinic.runtime.attached import follow_forks
    from gradclinic.runtime.script import Program

    config = config_for(args, [words[0] if args.module is None else os.getcwd()])
    program = Program(words[0], args.module is not None)
    recording = Recording(own=[program.own], step_limit=args.steps)
    follow_forks(recording)
    return program, recording, config


def _experiments(args: argparse.Namespace, recording: Recording) -> tuple[tuple[str, ...], Capture]:
    from gradclinic.commands._experiments import wanted
    from gradclinic.runtime.capture import Capture

    kinds, capture = wanted(args.probe or ""), Capture()
    if kinds:
        recording.capture(capture)
    return kinds, capture


def _report(
    target: str,
    told: Sequence[Record],
    config: Config,
    args: argparse.Namespace,
    code: int,
    started: float,
    problems: tuple[str, ...],
    kept: Path | None,
    outcomes: Sequence[Outcome] = (),
) -> int:
    """Print the diagnosis of all processes; returns how the command ends."""
    gathered = gather(told, succeeded=code == 0)
    summary = Summary(
        steps=gathered.steps, ranks=gathered.ranks, elapsed_s=round(time.monotonic() - started, 3)
    )
    observations = (*gathered.observations, *(outcome.observation() for outcome in outcomes))
    diagnosis = diagnose(target, observations, config, summary, (*gathered.problems, *problems))
    if outcomes:
        diagnosis = replace(
            diagnosis,
            conclusion="\n".join(outcome.conclusion for outcome in outcomes),
            tables=(*diagnosis.tables, *(table for outcome in outcomes for table in outcome.tables)),
            measured=dict(diagnosis.measured)
            | {name: fact for outcome in outcomes for name, fact in outcome.measured().items()},
        )
    sys.stdout.flush()
    emit(diagnosis, args, sys.stderr)
    if kept is not None:
        keep_diagnosis(kept, diagnosis, gathered.observations, code=code)
        _tell_where(kept, args)
    return code or exit_code(diagnosis, config)


def _tell_where(kept: Path, args: argparse.Namespace) -> None:
    """To a person; whoever reads a pipe gets the report and no more."""
    if sys.stderr.isatty() and not args.quiet and any(files_of(kept)):
        print(f"kept in {os.path.relpath(kept)}; `gradclinic report` draws it", file=sys.stderr)


def _kept_in(target: str, args: argparse.Namespace, config: Config) -> Path | None:
    """Where this run is to be kept; None when it is not."""
    return None if args.no_store or not config.store else new_run(target, Path.cwd())


def _positive(word: str) -> int:
    if not word.isdecimal() or int(word) < 1:
        raise argparse.ArgumentTypeError(f"{word!r} is not a number of steps")
    return int(word)
