"""For a pull request comment, a job summary or an issue."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TextIO

from gradclinic.findings import Diagnosis, Finding
from gradclinic.reporters._excerpt import excerpt
from gradclinic.reporters._page import Page
from gradclinic.reporters._words import counts, looked_at, one_line, place


def render(diagnosis: Diagnosis, out: TextIO, *, pages: Mapping[str, Page], quiet: bool) -> None:
    if quiet:
        lines = [f"- {one_line(finding)}" for finding in diagnosis.findings]
    else:
        lines = list(_report(diagnosis))
    out.writelines(line + "\n" for line in lines)


def _report(diagnosis: Diagnosis) -> Iterator[str]:
    seen = looked_at(diagnosis)
    yield f"## gradclinic: {counts(diagnosis) or 'nothing found'}{f' in {seen}' if seen else ''}"
    for finding in diagnosis.findings:
        yield from _finding(finding)
    if diagnosis.problems:
        yield "\n### Not judged\n"
        yield from (f"- {problem}" for problem in diagnosis.problems)


def _finding(finding: Finding) -> Iterator[str]:
    where = f" at `{place(finding.location)}`" if finding.location else ""
    yield f"\n### {finding.severity} {finding.code} {finding.name}{where}\n"
    yield f"{finding.message}\n"
    shown = excerpt(finding.location) if finding.location else None
    if shown:
        code = "\n".join(f"{line}  # <--" if number == shown.marked else line for number, line in shown.lines)
        yield f"```python\n{code}\n```\n"
    if finding.explained_by:
        yield f"- explained by {finding.explained_by}"
    yield from (f"- {evidence.label}: `{evidence.value}`" for evidence in finding.evidence)
    if finding.fix:
        yield f"- **fix**: {finding.fix.text}"
