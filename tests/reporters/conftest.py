"""One diagnosis with something of everything, and a way to render it."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest

from gradclinic.facts import Location, Source
from gradclinic.findings import (
    Check,
    Diagnosis,
    Edit,
    Evidence,
    Finding,
    Fix,
    Kind,
    Point,
    Severity,
    State,
    Summary,
)
from gradclinic.reporters import Page, report
from tests.conftest import CLIPS_TOO_LATE

CAUSE = Finding(
    "GC109",
    "clip-after-step",
    Severity.ERROR,
    Kind.CAUSE,
    "gradients are clipped after optimizer.step() has used them",
    Location("train.py", 12, 4, "train"),
    (Evidence("order seen", "backward:10 step:11 clip:12"),),
    Fix("move the clip up, between backward() and step()", (Edit("train.py", 12, 4, 12, 6, "xx"),)),
    0.98,
    (Source.STATIC, Source.RUNTIME),
    ("GC601",),
)
SYMPTOM = Finding(
    "GC601",
    "exploding-gradients",
    Severity.ERROR,
    Kind.SYMPTOM,
    "gradient norms reach 5e4",
    evidence=(Evidence("first step", "7"),),
    sources=(Source.RUNTIME,),
    explained_by="GC109",
)
ADVICE = Finding(
    "GC611", "value-clipping", Severity.INFO, Kind.CAUSE, "50% of steps, 3: bent", Location("a,b:c.py", 3)
)
PAGES = {
    finding.code: Page(finding.severity, f"Summary of {finding.code}.", f"# {finding.code}\n\nHelp.")
    for finding in (CAUSE, SYMPTOM, ADVICE)
}


@pytest.fixture
def diagnosis() -> Diagnosis:
    return Diagnosis(
        command="run",
        target="train.py",
        findings=(CAUSE, ADVICE, SYMPTOM),
        judged=(
            Check("clip order", State.FAIL),
            Check("schedule", State.PASS),
            Check("graph shape", State.NOT_SEEN, "model is compiled"),
        ),
        checklist=(Point("gradients are cleared once per update", State.PASS),),
        summary=Summary(files=1, steps=50, elapsed_s=3.21987),
        problems=("helper.py:1:5: not valid Python: '(' was never closed",),
    )


@pytest.fixture
def render(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Render to a string, in a directory that holds the script the findings speak of."""
    (tmp_path / "train.py").write_text(CLIPS_TOO_LATE)
    monkeypatch.chdir(tmp_path)

    def rendered(name: str, diagnosis: Diagnosis, *, quiet: bool = False, out: StringIO | None = None) -> str:
        out = out or StringIO()
        report(name, diagnosis, out, pages=PAGES, quiet=quiet)
        return out.getvalue()

    return rendered


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal() -> StringIO:
    return Terminal()
