"""Find training bugs in source code, without importing it.

Reads Python files, notebooks, directories of them, or standard input (`-`); never imports torch.
A comment `# gradclinic: ignore[GC109]` on a line silences that rule there; lasting choices go
into [tool.gradclinic] of pyproject.toml.

Exit codes: 0 nothing at or above --fail-on, 1 findings, 2 wrong usage or a file that cannot
be read.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradclinic.commands._shared import add_shared_arguments, config_for, emit, exit_code
from gradclinic.config import Config
from gradclinic.errors import UsageError
from gradclinic.findings import Diagnosis
from gradclinic.linting import STDIN, lint, with_topics

if TYPE_CHECKING:
    from gradclinic.linting.fixed_files import FixedFile


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths", nargs="*", default=["."], metavar="PATH", help="files and directories (default: .)"
    )
    add_shared_arguments(parser)
    parser.add_argument(
        "--fix", action="store_true", help="apply the fixes that cannot change a correct program"
    )
    parser.add_argument("--unsafe-fixes", action="store_true", help="apply the other fixes too")
    parser.add_argument(
        "--diff", action="store_true", help="show what the fixes would change, change nothing"
    )
    parser.add_argument(
        "--statistics", action="store_true", help="how often each rule fired, instead of where"
    )
    parser.add_argument("--baseline", metavar="FILE", help="leave out what FILE knows of")
    parser.add_argument(
        "--write-baseline",
        metavar="FILE",
        help="write what is found to FILE, to be left out later",
    )
    parser.add_argument(
        "--jobs", type=_jobs, default=0, metavar="N", help="processes (default: one per core)"
    )


def _jobs(word: str) -> int:
    if not word.isdecimal() or int(word) < 1:
        raise argparse.ArgumentTypeError(f"{word} is not a number of processes, 1 or more")
    return int(word)


def run(args: argparse.Namespace) -> int:
    _check_usage(args)
    config = config_for(args, args.paths)
    diagnosis = _look(config, args)
    if diagnosis.summary.files == 0 and not diagnosis.problems:
        _say(f"no Python files in {', '.join(args.paths)}; nothing was checked")
    if args.write_baseline:
        from gradclinic.linting.baseline import write_baseline

        write_baseline(args.write_baseline, diagnosis.findings)
        count = len(diagnosis.findings)
        _say(f"wrote {count} finding{'' if count == 1 else 's'} to {args.write_baseline}")
        _tell_problems(diagnosis)
        return 2 if diagnosis.problems else 0
    if args.diff:
        _show_diff(diagnosis, config, args)
    else:
        if args.fix or args.unsafe_fixes:
            diagnosis = _fix(diagnosis, config, args)
        if args.statistics:
            print("\n".join(_statistics(diagnosis)))
            _tell_problems(diagnosis)
        else:
            # The text tells no topics, and is what most runs and every hook ask for.
            emit(diagnosis if args.format == "text" else with_topics(diagnosis), args)
    return exit_code(diagnosis, config) or (2 if diagnosis.problems else 0)


def _look(config: Config, args: argparse.Namespace) -> Diagnosis:
    """What is found, without what the baseline knows."""
    if not args.baseline:
        return lint(args.paths, config, jobs=args.jobs)
    from gradclinic.linting.baseline import read_baseline

    known = read_baseline(args.baseline)
    return known.without(lint(args.paths, config, jobs=args.jobs))


def _check_usage(args: argparse.Namespace) -> None:
    if args.write_baseline and (args.baseline or args.fix or args.unsafe_fixes or args.diff):
        raise UsageError(
            "--write-baseline only writes down what is found; leave out --baseline, --fix and --diff"
        )
    if args.statistics and args.format != "text":
        raise UsageError(
            f"--statistics is text; --format {args.format} already holds every finding, leave one out"
        )
    if (args.fix or args.unsafe_fixes) and not args.diff and STDIN in args.paths:
        raise UsageError("standard input cannot be fixed in place; add --diff to see the change")


def _fix(diagnosis: Diagnosis, config: Config, args: argparse.Namespace) -> Diagnosis:
    from gradclinic.linting.fixed_files import fix_files

    fixed = fix_files(diagnosis, config, unsafe=args.unsafe_fixes)
    for file in fixed:
        file.write()
    _tell("fixed", fixed, diagnosis, args)
    return _look(config, args) if fixed else diagnosis


def _show_diff(diagnosis: Diagnosis, config: Config, args: argparse.Namespace) -> None:
    from gradclinic.linting.fixed_files import fix_files

    fixed = fix_files(diagnosis, config, unsafe=args.unsafe_fixes)
    for file in fixed:
        sys.stdout.writelines(file.diff())
    sys.stdout.flush()
    _tell("would fix", fixed, diagnosis, args)
    _tell_problems(diagnosis)


def _tell_problems(diagnosis: Diagnosis) -> None:
    for problem in diagnosis.problems:
        _say(problem)


def _tell(verb: str, fixed: list[FixedFile], diagnosis: Diagnosis, args: argparse.Namespace) -> None:
    from gradclinic.linting.fixing import fixable

    count = sum(file.count for file in fixed)
    more = sum(
        1 for f in diagnosis.findings if fixable(f, unsafe=True) and not fixable(f, unsafe=args.unsafe_fixes)
    )
    hint = f"; --unsafe-fixes would fix {more} more" if more else ""
    total = len(diagnosis.findings)
    _say(f"{verb} {count} of {total} finding{'' if total == 1 else 's'}{hint}")


def _statistics(diagnosis: Diagnosis) -> Iterator[str]:
    counted = Counter((finding.code, finding.name, finding.severity) for finding in diagnosis.findings)
    for (code, name, severity), count in sorted(counted.items(), key=lambda item: (-item[1], item[0])):
        yield f"{count:>6}  {severity:<7}  {code} {name}"
    yield f"{len(diagnosis.findings):>6}  in {diagnosis.summary.files:,} files"


def _say(line: str) -> None:
    print(f"gradclinic: {line}", file=sys.stderr)
