"""Workflow commands that GitHub Actions turns into annotations on the changed lines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TextIO

from gradclinic.findings import Diagnosis, Finding, Severity
from gradclinic.reporters._page import Page
from gradclinic.reporters._words import in_cell

COMMAND = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def render(diagnosis: Diagnosis, out: TextIO, *, pages: Mapping[str, Page], quiet: bool) -> None:
    for finding in diagnosis.findings:
        out.write(_annotation(finding) + "\n")
    for problem in diagnosis.problems:
        out.write(f"::warning title=gradclinic::{_data(problem)}\n")


def _annotation(finding: Finding) -> str:
    properties = {"title": f"{finding.code} {finding.name}"}
    message = finding.message
    if finding.location:
        where = finding.location
        properties["file"] = where.path
        if where.cell is None:
            properties |= {"line": str(where.line), "col": str(where.column + 1)}
        else:  # a line would be one of the notebook's JSON
            message = f"{in_cell(where)}: {message}"
    lines = [message, *(f"{evidence.label}: {evidence.value}" for evidence in finding.evidence)]
    if finding.fix:
        lines.append(f"fix: {finding.fix.text}")
    listed = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    text = _data("\n".join(lines))
    return f"::{COMMAND[finding.severity]} {listed}::{text}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
