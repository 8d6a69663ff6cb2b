"""A diagnosis where a cell's result is shown: HTML in a notebook, text in a terminal."""

from __future__ import annotations

from io import StringIO

from gradclinic.findings import Diagnosis
from gradclinic.markup import rendered
from gradclinic.reporters import text
from gradclinic.reporters._excerpt import excerpt
from gradclinic.reporters._words import counts, looked_at, place


def as_html(diagnosis: Diagnosis) -> str:
    return rendered(
        "diagnosis.html",
        diagnosis=diagnosis,
        findings=[(f, excerpt(f.location) if f.location else None) for f in diagnosis.findings],
        place=place,
        seen=looked_at(diagnosis),
        verdict=counts(diagnosis) or "nothing found",
    )


def as_text(diagnosis: Diagnosis) -> str:
    out = StringIO()
    text.render(diagnosis, out, pages={}, quiet=False)
    return out.getvalue().rstrip("\n")
