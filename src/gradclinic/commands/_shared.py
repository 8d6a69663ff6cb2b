"""What lint, run and probe have in common: their options, how they report, how they end."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from typing import TextIO

from gradclinic.config import Config, fail_on, nearest
from gradclinic.errors import UsageError
from gradclinic.findings import Diagnosis
from gradclinic.reporters import Page, names, report
from gradclinic.rules import find_rule, page


def add_shared_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", choices=names(), default="text", help="how to report (default: text)")
    parser.add_argument("--output", metavar="FILE", help="write the report to FILE")
    parser.add_argument(
        "--select",
        action="append",
        metavar="RULES",
        help="judge only these: codes, names or prefixes such as GC1",
    )
    parser.add_argument("--ignore", action="append", metavar="RULES", help="leave these out")
    parser.add_argument(
        "--fail-on",
        choices=("error", "warning", "info", "never"),
        help="exit with 1 from this severity on (default: error)",
    )
    parser.add_argument(
        "--quiet", action="store_true", help="one line per finding, nothing when there is none"
    )


def config_for(args: argparse.Namespace, targets: Iterable[str]) -> Config:
    """The project's configuration, overruled by the command line."""
    config = nearest(targets)
    return config.overruled(
        select=_words(args.select),
        ignore=_words(args.ignore),
        fail_on=fail_on(args.fail_on, "--fail-on") if args.fail_on else config.fail_on,
    )


def _words(values: list[str] | None) -> tuple[str, ...]:
    return tuple(word.strip() for value in values or () for word in value.split(",") if word.strip())


def emit(diagnosis: Diagnosis, args: argparse.Namespace, stream: TextIO | None = None) -> None:
    """Write the report to `stream` (stdout by default) or to --output, what went wrong to stderr."""
    if args.output:
        try:
            with open(args.output, "w", encoding="utf-8") as file:
                report(args.format, diagnosis, file, pages=_pages(diagnosis), quiet=args.quiet)
        except OSError as error:
            raise UsageError(f"cannot write the report to {args.output}: {error.strerror}") from error
    else:
        out = stream or sys.stdout
        report(args.format, diagnosis, out, pages=_pages(diagnosis), quiet=args.quiet)
        out.flush()
    for problem in diagnosis.problems:
        print(f"gradclinic: {problem}", file=sys.stderr)


def exit_code(diagnosis: Diagnosis, config: Config) -> int:
    """1 when a finding reaches the severity to fail on."""
    return int(config.fail_on is not None and diagnosis.worst_reaches(config.fail_on))


def _pages(diagnosis: Diagnosis) -> dict[str, Page]:
    rules = map(find_rule, {finding.code for finding in diagnosis.findings})
    return {rule.code: Page(rule.severity, rule.summary, page(rule)) for rule in rules}
