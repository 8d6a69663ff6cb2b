"""SARIF 2.1.0, for code scanning and editors."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any, TextIO
from urllib.parse import quote

from gradclinic import __version__
from gradclinic.findings import Diagnosis, Edit, Finding, Severity
from gradclinic.reporters._page import Page
from gradclinic.reporters._words import in_cell

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
LEVEL = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def render(diagnosis: Diagnosis, out: TextIO, *, pages: Mapping[str, Page], quiet: bool) -> None:
    json.dump(document(diagnosis, pages), out, indent=2, ensure_ascii=False)
    out.write("\n")


def document(diagnosis: Diagnosis, pages: Mapping[str, Page]) -> dict[str, Any]:
    names = {finding.code: finding.name for finding in diagnosis.findings}
    codes = sorted(names)
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "gradclinic",
                        "version": __version__,
                        "rules": [_rule(code, names[code], pages[code]) for code in codes],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "invocations": [
                    {
                        "executionSuccessful": not diagnosis.problems,
                        "toolExecutionNotifications": [
                            {"level": "error", "message": {"text": problem}} for problem in diagnosis.problems
                        ],
                    }
                ],
                "results": [_result(finding, codes.index(finding.code)) for finding in diagnosis.findings],
            }
        ],
    }


def _rule(code: str, name: str, page: Page) -> dict[str, Any]:
    return {
        "id": code,
        "name": name,
        "shortDescription": {"text": page.summary},
        "help": {"text": page.markdown, "markdown": page.markdown},
        "defaultConfiguration": {"level": LEVEL[page.severity]},
    }


def _result(finding: Finding, rule: int) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": rule,
        "level": LEVEL[finding.severity],
        "message": {"text": _message(finding)},
        "locations": _locations(finding),
        "properties": {
            "kind": finding.kind,
            "confidence": finding.confidence,
            "evidence": {evidence.label: evidence.value for evidence in finding.evidence},
        },
    }
    if finding.fix and finding.fix.edits and finding.location and finding.location.cell is None:
        changes = [_change(path, edits) for path, edits in groupby(finding.fix.edits, lambda edit: edit.path)]
        result["fixes"] = [{"description": {"text": finding.fix.text}, "artifactChanges": changes}]
    return result


def _message(finding: Finding) -> str:
    where = finding.location
    message = (
        finding.message if where is None or where.cell is None else f"{in_cell(where)}: {finding.message}"
    )
    return f"{message}. Fix: {finding.fix.text}" if finding.fix else message


def _locations(finding: Finding) -> list[dict[str, Any]]:
    where = finding.location
    if where is None:
        return []
    place: dict[str, Any] = {"artifactLocation": {"uri": _uri(where.path)}}
    logical = [{"name": where.function, "kind": "function"}] if where.function else []
    if where.cell is None:
        place["region"] = {"startLine": where.line, "startColumn": where.column + 1}
    else:  # a region would be one of the notebook's JSON
        logical.append({"name": in_cell(where), "kind": "element"})
    location: dict[str, Any] = {"physicalLocation": place}
    return [location | {"logicalLocations": logical} if logical else location]


def _change(path: str, edits: Iterable[Edit]) -> dict[str, Any]:
    return {
        "artifactLocation": {"uri": _uri(path)},
        "replacements": [
            {
                "deletedRegion": {
                    "startLine": edit.line,
                    "startColumn": edit.column + 1,
                    "endLine": edit.end_line,
                    "endColumn": edit.end_column + 1,
                },
                "insertedContent": {"text": edit.text},
            }
            for edit in edits
        ],
    }


def _uri(path: str) -> str:
    """Relative to where the command ran, as code scanning wants it; absolute only from elsewhere."""
    if not os.path.isabs(path):
        return quote(Path(path).as_posix())
    relative = os.path.relpath(path)
    return Path(path).as_uri() if relative.startswith("..") else quote(Path(relative).as_posix())
