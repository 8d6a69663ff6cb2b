"""The document other programs read, schema 1."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, TextIO

from gradclinic import __version__
from gradclinic.findings import Diagnosis, Finding, Fix, Severity
from gradclinic.reporters._page import Page

SCHEMA = 1


def render(diagnosis: Diagnosis, out: TextIO, *, pages: Mapping[str, Page], quiet: bool) -> None:
    json.dump(document(diagnosis), out, indent=2, ensure_ascii=False)
    out.write("\n")


def document(diagnosis: Diagnosis) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "tool": {"name": "gradclinic", "version": __version__},
        "command": diagnosis.command,
        "target": diagnosis.target,
        "findings": [_finding(finding) for finding in diagnosis.findings],
        "judged": [_without_empty(asdict(check)) for check in diagnosis.judged],
        "checklist": [asdict(point) for point in diagnosis.checklist],
        "summary": {
            **{severity.value: diagnosis.count(severity) for severity in Severity},
            "files": diagnosis.summary.files,
            "steps": diagnosis.summary.steps,
            **({"ranks": diagnosis.summary.ranks} if diagnosis.summary.ranks else {}),
            "elapsed_s": round(diagnosis.summary.elapsed_s, 3),
        },
        "problems": list(diagnosis.problems),
        **_measured(diagnosis),
    }


def _measured(diagnosis: Diagnosis) -> dict[str, Any]:
    """What an experiment adds to the document."""
    if not diagnosis.tables and not diagnosis.conclusion:
        return {}
    return {
        "conclusion": diagnosis.conclusion,
        "tables": [asdict(table) for table in diagnosis.tables],
        "measured": dict(diagnosis.measured),
    }


def _finding(finding: Finding) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "code": finding.code,
        "name": finding.name,
        "severity": finding.severity,
        "kind": finding.kind,
        "confidence": finding.confidence,
        "sources": list(finding.sources),
        "message": finding.message,
        "location": _location(finding),
        "evidence": [asdict(evidence) for evidence in finding.evidence],
        "explains": list(finding.explains),
        "fix": _fix(finding.fix) if finding.fix else None,
    }
    if finding.ranks:
        shown["ranks"] = list(finding.ranks)
    if finding.explained_by:
        shown["explained_by"] = finding.explained_by
    return shown


def _fix(fix: Fix) -> dict[str, Any]:
    edits = [_without_cell(asdict(edit)) for edit in fix.edits]
    return {"text": fix.text, "edits": edits, "safe": fix.safe}


def _location(finding: Finding) -> dict[str, Any] | None:
    if finding.location is None:
        return None
    return _without_cell(asdict(finding.location))


def _without_cell(place: dict[str, Any]) -> dict[str, Any]:
    """Only notebooks have cells; which line of a library acted for the user's is not for others."""
    return {k: v for k, v in place.items() if k != "via" and (k != "cell" or v is not None)}


def _without_empty(shown: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in shown.items() if value != ""}
