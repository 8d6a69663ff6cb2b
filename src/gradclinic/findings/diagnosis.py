"""Findings become a diagnosis: the likeliest cause first, symptoms under what explains them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from enum import StrEnum
from typing import Any, TypeVar

from gradclinic.facts.source import Source
from gradclinic.findings.finding import Finding, Kind, Severity
from gradclinic.findings.table import Table
from gradclinic.frozen import frozen, sealed


class State(StrEnum):
    """How looking at something ended, what counts most first."""

    FAIL = "fail"
    PASS = "pass"
    NOT_SEEN = "not seen"

    @property
    def rank(self) -> int:
        return list(State).index(self)


@frozen
class Check:
    """A topic that was looked at, and how that ended."""

    check: str
    state: State
    why: str = ""


@frozen
class Point:
    """One point of the checklist of a reliable loop."""

    point: str
    state: State


Judged = TypeVar("Judged", Check, Point)


def strongest(judged: Iterable[Judged], name: Callable[[Judged], str]) -> tuple[Judged, ...]:
    """One of each name: a failure counts over a pass, a pass over what was not seen."""
    kept: dict[str, Judged] = {}
    for one in judged:
        known = kept.get(name(one))
        if known is None or one.state.rank < known.state.rank:
            kept[name(one)] = one
    return tuple(kept.values())


@frozen
class Summary:
    files: int = 0
    steps: int = 0
    ranks: int = 0
    """Processes of a distributed run that were watched."""
    elapsed_s: float = 0.0


@sealed
class Diagnosis:
    command: str
    target: str
    findings: tuple[Finding, ...] = ()
    judged: tuple[Check, ...] = ()
    checklist: tuple[Point, ...] = ()
    summary: Summary = field(default_factory=Summary)
    problems: tuple[str, ...] = ()
    """What kept a file or a part of the run from being judged: a syntax error, a crash."""
    conclusion: str = ""
    """What an experiment found out, in one line."""
    tables: tuple[Table, ...] = ()
    """What it measured."""
    measured: Mapping[str, object] = field(default_factory=dict)
    """The same in full, ready for JSON."""

    def count(self, severity: Severity) -> int:
        return sum(1 for finding in self.findings if finding.severity is severity)

    def worst_reaches(self, threshold: Severity) -> bool:
        return any(finding.severity.at_least(threshold) for finding in self.findings)

    def symptoms_of(self, cause: Finding) -> tuple[Finding, ...]:
        return tuple(f for f in self.findings if f.explained_by == cause.code and f is not cause)

    def __str__(self) -> str:
        # Reporters see findings, so findings can only ask for them once someone wants to look.
        from gradclinic.reporters._notebook import as_text

        return as_text(self)

    def _repr_html_(self) -> str:
        from gradclinic.reporters._notebook import as_html

        return as_html(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """How IPython shows it in a terminal."""
        printer.text(str(self))


@sealed
class Relations:
    """What the rules know of each other, by code."""

    explains: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    subsumes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def rank(findings: Iterable[Finding], relations: Relations) -> tuple[Finding, ...]:
    """Merge what several sources or paths say, drop what another finding says better, link, sort."""
    linked = _link(_without_subsumed(merge(findings), relations.subsumes), relations.explains)
    return in_order(linked)


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Ranked findings of several files as one ranking."""
    return tuple(sorted(findings, key=_order))


def merge(findings: Iterable[Finding]) -> list[Finding]:
    """One finding for one fault: the same code at the same line about the same thing."""
    merged: dict[tuple[object, ...], Finding] = {}
    for finding in findings:
        where = finding.location
        key = (finding.code, (where.path, where.cell, where.line) if where else finding.subject)
        known = merged.get(key)
        if known is None:
            merged[key] = finding
        else:
            best, other = sorted((known, finding), key=lambda f: (f.severity.rank, -f.confidence))
            merged[key] = _together(best, other)
    return _confirmed(list(merged.values()))


def _together(best: Finding, other: Finding) -> Finding:
    seen = {evidence.label for evidence in best.evidence}
    return replace(
        best,
        sources=tuple(sorted({*best.sources, *other.sources}, reverse=True)),
        ranks=tuple(sorted({*best.ranks, *other.ranks})),
        evidence=best.evidence + tuple(e for e in other.evidence if e.label not in seen),
        confidence=max(best.confidence, other.confidence),
        fix=best.fix if best.fix and (best.fix.edits or best.fix.changes or not other.fix) else other.fix,
    )


def _confirmed(findings: list[Finding]) -> list[Finding]:
    """An experiment knows no line; what it says of a fault that has one is evidence for that."""
    kept = list(findings)
    for finding in findings:
        at = [i for i, one in enumerate(kept) if one.code == finding.code and one.location is not None]
        if finding.location is None and finding.sources == (Source.PROBE,) and len(at) == 1:
            kept[at[0]] = _together(kept[at[0]], finding)
            kept.remove(finding)
    return kept


def _without_subsumed(findings: list[Finding], subsumes: Mapping[str, tuple[str, ...]]) -> list[Finding]:
    covered = {(code, f.subject) for f in findings for code in subsumes.get(f.code, ())}
    return [f for f in findings if (f.code, f.subject) not in covered]


def _link(findings: list[Finding], explains: Mapping[str, tuple[str, ...]]) -> list[Finding]:
    """What a likelier cause accounts for stands under it, as a symptom, be it a cause by itself or not."""
    above: dict[str, str] = {}
    for cause in sorted((f for f in findings if f.kind is Kind.CAUSE), key=_order):
        for code in explains.get(cause.code, ()):
            if code not in (cause.code, _top(cause.code, above)):
                above.setdefault(code, cause.code)
    linked: list[Finding] = []
    for finding in findings:
        top = _top(finding.code, above)
        if top != finding.code:
            linked.append(replace(finding, kind=Kind.SYMPTOM, explained_by=top, explains=()))
        else:
            present = dict.fromkeys(f.code for f in findings if f.code != finding.code)
            under = tuple(code for code in present if _top(code, above) == finding.code)
            linked.append(replace(finding, explains=under))
    return linked


def _top(code: str, above: Mapping[str, str]) -> str:
    while code in above:
        code = above[code]
    return code


def _order(finding: Finding) -> tuple[object, ...]:
    where = finding.location
    return (
        finding.explained_by is not None,
        finding.severity.rank,
        finding.kind is Kind.SYMPTOM,
        -len(finding.explains),
        -round(finding.confidence, 2),
        (where.path, where.cell or 0, where.line, where.column) if where else ("", 0, 0, 0),
        finding.code,
    )
