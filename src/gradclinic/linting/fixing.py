"""Fixes put into the source: whole, never overlapping, and only if the file still parses."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import replace

from gradclinic.config import Config
from gradclinic.findings import Edit, Finding, Fix
from gradclinic.linting.examine import examine_text
from gradclinic.source_text import SourceText

MOST_ROUNDS = 10
"""One fix can make room for the next; two that undo each other must come to an end."""


def fix_source(source: SourceText, path: str, config: Config, *, unsafe: bool) -> tuple[SourceText, int]:
    """The source with every applicable fix of its findings, and how many those were."""
    count = 0
    for _ in range(MOST_ROUNDS):
        findings = examine_text(source, path, config).findings
        text, applied = apply_fixes(
            source, [finding.fix for finding in findings if fixable(finding, unsafe=unsafe)]
        )
        if not applied:
            break
        source, count = replace(source, text=text), count + applied
    return source, count


def fixable(finding: Finding, *, unsafe: bool) -> bool:
    """True if the finding carries edits, all in its own file, that may be applied."""
    fix, where = finding.fix, finding.location
    if fix is None or where is None or not fix.edits:
        return False
    return (fix.safe or unsafe) and all(edit.path == where.path for edit in fix.edits)


def apply_fixes(source: SourceText, fixes: Iterable[Fix | None]) -> tuple[str, int]:
    """The text after the fixes that fit together, and how many fitted."""
    taken: list[Edit] = []
    text, count = source.text, 0
    for fix in fixes:
        if fix is None or any(_overlap(edit, other) for edit in fix.edits for other in taken):
            continue
        candidate = _edited(source, [*taken, *fix.edits])
        if candidate != text and _parses(candidate):
            taken += fix.edits
            text, count = candidate, count + 1
    return text, count


def _edited(source: SourceText, edits: Iterable[Edit]) -> str:
    lines = source.lines
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    newline = "\r\n" if lines and lines[0].endswith("\r\n") else "\n"
    text = source.text
    # From the end, so that what comes before keeps its place.
    for edit in sorted(edits, key=lambda edit: (edit.line, edit.column), reverse=True):
        begin, end = starts[edit.line - 1] + edit.column, starts[edit.end_line - 1] + edit.end_column
        text = text[:begin] + edit.text.replace("\n", newline) + text[end:]
    return text


def _overlap(one: Edit, other: Edit) -> bool:
    """True if they share text, or insert at the same place, where their order would be a guess."""
    first, second = sorted((one, other), key=_span)
    return _span(first)[0] == _span(second)[0] or _span(first)[1] > _span(second)[0]


def _span(edit: Edit) -> tuple[tuple[int, int], tuple[int, int]]:
    return (edit.line, edit.column), (edit.end_line, edit.end_column)


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return False
    return True
