"""For people: the likeliest cause on the first line, then its place, evidence and remedy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TextIO

from gradclinic.findings import Diagnosis, Finding, Severity, State, Table
from gradclinic.reporters._excerpt import Excerpt, excerpt
from gradclinic.reporters._line import Line, width_of, write_lines
from gradclinic.reporters._page import Page
from gradclinic.reporters._words import amount, counts, looked_at, one_line, place, seen_on

# Named ANSI colours follow the terminal's own theme, so they read on dark and on light.
STYLE = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.INFO: "bold cyan"}
INDENT = "  "


def render(diagnosis: Diagnosis, out: TextIO, *, pages: Mapping[str, Page], quiet: bool) -> None:
    if quiet:
        write_lines((Line(one_line(finding)) for finding in diagnosis.findings), out)
    else:
        write_lines(_report(diagnosis, width_of(out)), out)


def _report(diagnosis: Diagnosis, width: int | None) -> Iterator[Line]:
    # What an experiment measured is what was asked for; in a run the likeliest cause comes first.
    asked_for = diagnosis.command.startswith("probe")
    for table in diagnosis.tables if asked_for else ():
        yield from _table(table, width)
    if diagnosis.conclusion:
        for line in diagnosis.conclusion.splitlines():
            yield from _paragraph(line, width, "")
        yield Line()
    shown: set[str] = set()
    for finding in diagnosis.findings:
        if finding.explained_by:
            continue
        yield from _finding(finding, diagnosis, width, "")
        for symptom in diagnosis.symptoms_of(finding):
            if finding.code not in shown:
                yield from _finding(symptom, diagnosis, width, INDENT * 2)
        shown.add(finding.code)
        yield Line()
    for table in () if asked_for else diagnosis.tables:
        yield from _table(table, width)
    yield from _judged(diagnosis, width)
    yield _closing(diagnosis)


def _finding(finding: Finding, diagnosis: Diagnosis, width: int | None, indent: str) -> Iterator[Line]:
    headline = Line(indent)
    if indent:
        headline.append("so you see: ", "dim")
    if finding.location:
        headline.append(place(finding.location), "bold").append(": ")
    headline.append(finding.severity, STYLE[finding.severity]).append(
        f" {finding.code} {finding.name}", "bold"
    )
    yield headline
    inner = indent + INDENT
    yield from _paragraph(finding.message, width, inner)
    if finding.location and not indent:
        yield from _source(excerpt(finding.location), width, inner)
    rows = [(evidence.label, evidence.value) for evidence in finding.evidence]
    ranks = seen_on(finding, diagnosis)
    if ranks:
        rows.append(("seen on", ranks))
    if finding.fix:
        rows.append(("fix", finding.fix.text))
    yield from _rows(rows, width, inner)


def _source(shown: Excerpt | None, width: int | None, indent: str) -> Iterator[Line]:
    if shown is None:
        return
    digits = len(str(shown.lines[-1][0]))
    for number, code in shown.lines:
        here = number == shown.marked
        line = Line(indent).append("> " if here else "  ", "bold").append(f"{number:>{digits}} │ ", "dim")
        line.append(code, "" if here else "dim")
        if width is not None:
            line.cut(width)
        yield line


def _table(table: Table, width: int | None) -> Iterator[Line]:
    """The first column to the left, numbers to the right."""
    yield Line(table.title, "bold")
    cells = [table.columns, *table.rows]
    widths = [max(len(row[column]) for row in cells) for column in range(len(table.columns))]
    for number, row in enumerate(cells):
        parts = [
            f"{cell:<{room}}" if column == 0 else f"{cell:>{room}}"
            for column, (cell, room) in enumerate(zip(row, widths, strict=True))
        ]
        line = Line(INDENT + "  ".join(parts).rstrip(), "dim" if number == 0 else "")
        if width is not None:
            line.cut(width)
        yield line
    for note in table.notes:
        yield from _paragraph(note, width, INDENT)
    yield Line()


def _rows(rows: list[tuple[str, str]], width: int | None, indent: str) -> Iterator[Line]:
    label_width = max((len(label) for label, _ in rows), default=0)
    for label, value in rows:
        hanging = indent + " " * (label_width + 2)
        for number, part in enumerate(_wrapped(value, width, len(hanging))):
            if number:
                yield Line(hanging + part)
            else:
                style = "bold green" if label == "fix" else "dim"
                yield Line(indent).append(f"{label:<{label_width}}", style).append(f"  {part}")


def _paragraph(text: str, width: int | None, indent: str) -> Iterator[Line]:
    return (Line(indent + part) for part in _wrapped(text, width, len(indent)))


def _wrapped(text: str, width: int | None, indent: int) -> list[str]:
    """Lines that fit the terminal; a piped report keeps each text on its line, where grep finds it."""
    if width is None:
        return text.splitlines() or [""]
    from textwrap import wrap  # slow to import, and a report of nothing found has nothing to wrap

    room = max(width - indent, 20)
    return [
        part
        for line in text.splitlines() or [""]
        for part in wrap(line, room, break_long_words=False, break_on_hyphens=False) or [""]
    ]


def _judged(diagnosis: Diagnosis, width: int | None) -> Iterator[Line]:
    """What a run did and could not judge, so that silence is not taken for health."""
    if diagnosis.command == "lint":
        return
    rows = []
    passed = [check.check for check in diagnosis.judged if check.state is State.PASS]
    if passed:
        rows.append(("passed", ", ".join(passed)))
    by_reason: dict[str, list[str]] = {}
    for check in diagnosis.judged:
        if check.state is State.NOT_SEEN:
            # That a script has no schedule is no news to its author; why a graph could not be read is.
            why = "" if check.why.endswith("was seen") else check.why
            by_reason.setdefault(why, []).append(check.check)
    rows += [
        ("not seen", ", ".join(names) + (f" ({why})" if why else ""))
        for why, names in sorted(by_reason.items())
    ]
    yield from _rows(rows, width, "")


def _closing(diagnosis: Diagnosis) -> Line:
    seen = looked_at(diagnosis)
    worst = next((severity for severity in Severity if diagnosis.count(severity)), None)
    line = Line()
    if worst is None and diagnosis.command == "run" and not diagnosis.summary.steps:
        line.append("no optimizer took a step: there was no training to judge", "bold")
    elif worst is None:
        line.append("nothing found", "bold green")
    else:
        line.append(counts(diagnosis), STYLE[worst])
    line.append(f" in {seen}" if seen else "")
    if diagnosis.problems:
        line.append(f", {amount(len(diagnosis.problems), 'problem')}", "bold")
    if worst is not None:
        line.append(f"; `gradclinic explain {diagnosis.findings[0].code}` tells more", "dim")
    return line
