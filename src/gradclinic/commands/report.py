"""Make one HTML file of a run: its diagnosis, checklist and figures.

RUN is a folder below .gradclinic/runs, a file in it, or a project; left out, the latest run here. The
file holds all it needs and opens without a network. Figures need plotly (extra `report`).

    gradclinic report
    gradclinic report .gradclinic/runs/20260101-120000-train -o report.html
"""

from __future__ import annotations

import argparse
from pathlib import Path

from gradclinic.commands._rule_pages import rule_pages
from gradclinic.errors import UsageError
from gradclinic.pages.assets import plotly_file
from gradclinic.store.folder import resolve


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", nargs="?", metavar="RUN", help="a run folder (default: the latest run here)")
    parser.add_argument(
        "-o", "--output", metavar="FILE", default="report.html", help="where to write (default: report.html)"
    )


def run(args: argparse.Namespace) -> int:
    plotly_file()
    # What reads and renders is imported once it is known that there is a run and something to draw with.
    path = resolve(args.run)
    from gradclinic.pages.report import report
    from gradclinic.store.reader import read

    page = report(read(path), rule_pages())
    target = Path(args.output)
    try:
        target.write_text(page, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write the report to {target}: {error.strerror}") from error
    print(f"{target}: {path.parent.name}, {len(page) / 1e6:.1f} MB")
    return 0
