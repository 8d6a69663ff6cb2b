"""Small pieces of wording that several formats share."""

from __future__ import annotations

from gradclinic.facts import Location
from gradclinic.findings import Diagnosis, Finding, Severity


def place(location: Location) -> str:
    """`train.py:42:9`, which terminals and editors turn into a link; columns count from 1 there.

    A run knows no columns, and then the line alone is the honest place.
    """
    return f"{location}:{location.column + 1}" if location.column else str(location)


def in_cell(location: Location) -> str:
    """`cell 3, line 42`, for who cannot be shown a place inside a notebook."""
    return f"cell {location.cell}, line {location.line}"


def one_line(finding: Finding) -> str:
    where = f"{place(finding.location)}: " if finding.location else ""
    return f"{where}{finding.severity} {finding.code} {finding.name}: {finding.message}"


def counts(diagnosis: Diagnosis) -> str:
    """`1 error, 2 warnings`; empty when there is nothing to count."""
    words = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
    return ", ".join(amount(diagnosis.count(s), word) for s, word in words.items() if diagnosis.count(s))


def amount(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def seen_on(finding: Finding, diagnosis: Diagnosis) -> str:
    """`all 4 ranks`, `rank 1`: where in a distributed run it was seen; empty if it was none."""
    among = diagnosis.summary.ranks
    if among < 2 or not finding.ranks:
        return ""
    if len(finding.ranks) == among:
        return f"all {among} ranks"
    return f"rank{'s' * (len(finding.ranks) > 1)} {', '.join(map(str, finding.ranks))} of {among}"


def looked_at(diagnosis: Diagnosis) -> str:
    """`3 files`, `50 steps`: how much the diagnosis rests on."""
    parts = []
    if diagnosis.command == "lint" or diagnosis.summary.files:
        parts.append(amount(diagnosis.summary.files, "file"))
    if diagnosis.summary.steps:
        parts.append(amount(diagnosis.summary.steps, "step"))
    if diagnosis.summary.ranks > 1:
        parts.append(f"{diagnosis.summary.ranks} ranks")
    return ", ".join(parts)
