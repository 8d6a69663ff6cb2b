"""Find training bugs in source code, without importing it.

Reads Python files, directories of them, or standard input (`-`), and never imports torch.
A comment `# gradclinic: ignore[GC109]` on a line silences that rule there; lasting choices go
into [tool.gradclinic] of pyproject.toml.

Exit codes: 0 nothing at or above --fail-on, 1 findings, 2 wrong usage or a file that cannot be read.
"""

from __future__ import annotations

import argparse
import sys

from gradclinic.commands._shared import add_shared_arguments, config_for, emit, exit_code
from gradclinic.linting import lint


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths", nargs="*", default=["."], metavar="PATH", help="files and directories (default: .)"
    )
    add_shared_arguments(parser)
    parser.add_argument("--jobs", type=int, default=0, metavar="N", help="processes (default: one per core)")


def run(args: argparse.Namespace) -> int:
    config = config_for(args, args.paths)
    diagnosis = lint(args.paths, config, jobs=args.jobs)
    if diagnosis.summary.files == 0 and not diagnosis.problems:
        print(f"gradclinic: no Python files in {', '.join(args.paths)}; nothing was checked", file=sys.stderr)
    emit(diagnosis, args)
    return exit_code(diagnosis, config) or (2 if diagnosis.problems else 0)
