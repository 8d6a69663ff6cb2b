"""Fixes put into the source: one after the other, each kept only if it has cured what it was for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from gradclinic.config import Config
from gradclinic.findings import Edit, Finding
from gradclinic.linting.examine import examine_text
from gradclinic.linting.notebooks import cell_text, one_cell, with_cell
from gradclinic.source_text import SourceText

MOST_FIXES = 200
"""One fix can make room for the next; two that undo each other must come to an end."""


def fix_source(source: SourceText, path: str, config: Config, *, unsafe: bool) -> tuple[SourceText, int]:
    """The source with every applicable fix of its findings, and how many those were."""
    findings = examine_text(source, path, config).findings
    for count in range(MOST_FIXES):
        for finding in findings:
            if not fixable(finding, unsafe=unsafe):
                continue
            fixed = _edited(source, finding.fix.edits if finding.fix else ())
            if fixed is None:
                continue
            left = _found(fixed, path, config)
            if left is not None and _cured(finding.code, findings, left):
                source, findings = fixed, left
                break
        else:
            return source, count
    return source, MOST_FIXES


def _found(source: SourceText, path: str, config: Config) -> tuple[Finding, ...] | None:
    """None if the source is no valid Python any more."""
    try:
        return examine_text(source, path, config).findings
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def fixable(finding: Finding, *, unsafe: bool) -> bool:
    """True if the finding carries edits, all in its own file, that may be applied."""
    fix, where = finding.fix, finding.location
    if fix is None or where is None or not fix.edits:
        return False
    return (fix.safe or unsafe) and all(edit.path == where.path for edit in fix.edits)


def _cured(code: str, before: Iterable[Finding], after: Iterable[Finding]) -> bool:
    """One finding of the rule less, and no more than before of all together."""
    then, now = [finding.code for finding in before], [finding.code for finding in after]
    return now.count(code) < then.count(code) and len(now) <= len(then)


def _edited(source: SourceText, edits: tuple[Edit, ...]) -> SourceText | None:
    cell = one_cell(edits)
    if cell is None:
        return apply_edits(source, edits) if all(edit.cell is None for edit in edits) else None
    text = apply_edits(SourceText(cell_text(source, cell)), edits)
    return with_cell(source, cell, text.text) if text else None


def apply_edits(source: SourceText, edits: Iterable[Edit]) -> SourceText | None:
    """The source after these edits; None if they overlap or change nothing."""
    lines = source.lines
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    newline = "\r\n" if lines and lines[0].endswith("\r\n") else "\n"
    text, untouched = source.text, len(source.text)
    # From the end, so that what comes before keeps its place.
    for edit in sorted(edits, key=lambda edit: (edit.line, edit.column), reverse=True):
        begin, end = starts[edit.line - 1] + edit.column, starts[edit.end_line - 1] + edit.end_column
        if end > untouched:
            return None
        text, untouched = text[:begin] + edit.text.replace("\n", newline) + text[end:], begin
    return replace(source, text=text) if text != source.text else None
