"""A run as one HTML file that opens anywhere, with no network."""

from __future__ import annotations

import time
from typing import Any

from markupsafe import Markup

from gradclinic import __version__
from gradclinic.markup import rendered
from gradclinic.pages import assets
from gradclinic.pages.figures import draw
from gradclinic.pages.found import Pages, found_in
from gradclinic.store.reader import StoredRun


def report(run: StoredRun, pages: Pages) -> str:
    figures, missing = draw(run)
    # Our own files and packed data; everything that comes from a program is escaped by the template.
    return rendered(
        "report.html",
        about=about(run),
        found=found_in(run, pages),
        events=run.events,
        missing=missing,
        version=__version__,
        css=Markup(assets.own("page.css")),
        plotly=Markup(assets.script_text(assets.plotly())),
        script=Markup(assets.script_text(assets.own("page.js"))),
        figures=Markup(assets.embedded([figure.as_json() for figure in figures])),
    )


def about(run: StoredRun) -> dict[str, Any]:
    """The head of a page: what ran, when, and how it ended."""
    known = run.about
    began = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(known.get("started", 0.0)))
    command = " ".join([str(known.get("target", "")), *map(str, known.get("arguments", []))])
    updates = sum(training.steps[-1].index + 1 for training in run.trainings if training.steps)
    lasted = _duration(known["ended"] - known["started"]) if "ended" in known else ""
    words = [command, began, f"{updates:,} updates", *filter(None, [lasted])]
    code = known.get("code")
    if code:
        words.append(f"exit code {code}")
    return {
        "target": str(known.get("target") or run.path.parent.name),
        "line": " · ".join(words),
        "state": run.state,
        "path": f"{run.path.parent.name}/{run.path.name}",
    }


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.1f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
