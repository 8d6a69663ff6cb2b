"""What a rule file is made of."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from types import ModuleType
from typing import Any, TypeVar

from gradclinic.facts.location import Location
from gradclinic.facts.source import Source
from gradclinic.facts.tape import Event
from gradclinic.findings.finding import Evidence, Finding, Fix, Kind, Severity

F = TypeVar("F")
SECTIONS = ("What it finds", "Why it hurts", "What to do", "Not the fix", "Known limits")


class Rule:
    """One fault: its identity here, its prose, examples and checks in the file around it.

    The module's docstring is its documentation, `BAD` and `GOOD` are scripts that must and must
    not raise it, and each function under `@rule.check` reads one type of fact, named by the
    annotation of its parameter.
    """

    def __init__(
        self,
        code: str,
        name: str,
        severity: Severity,
        *,
        since: str,
        sources: Iterable[Source],
        topic: str,
        needs: Iterable[str] = (),
        kind: Kind = Kind.CAUSE,
        explains: Iterable[str] = (),
        subsumes: Iterable[str] = (),
    ) -> None:
        self.code = code
        self.name = name
        self.severity = severity
        self.since = since
        self.sources = tuple(sources)
        self.topic = topic
        """What it looks at, in the words of the report: several rules share one."""
        self.needs = frozenset(needs)
        """Features a tape must have for the topic to be seen: kinds of events and actors, ACCUMULATION."""
        self.kind = kind
        self.explains = tuple(explains)
        """Symptoms this cause accounts for, by code."""
        self.subsumes = tuple(subsumes)
        """Findings about the same subject that say nothing new once this one is made."""
        self.checks: dict[type, Callable[[Any], Iterator[Finding]]] = {}
        self.module = ""
        self._file: ModuleType | None = None

    def check(self, function: Callable[[F], Iterator[Finding]]) -> Callable[[F], Iterator[Finding]]:
        """Register `function` for the facts its parameter is annotated with."""
        annotation = next(iter(function.__annotations__.values()))
        if isinstance(annotation, str):
            # What inspect.signature would do; for every rule at every start it takes too long.
            annotation = function.__globals__[annotation]
        if annotation in self.checks:
            raise ValueError(f"{self.code} judges {annotation.__name__} twice")
        self.checks[annotation] = function
        return function

    def attach(self, module: ModuleType) -> None:
        """Documentation and examples are those of the rule's own module, taken when they are asked for."""
        self.module = module.__name__
        self._file = module

    @cached_property
    def doc(self) -> str:
        return inspect.cleandoc(self._file.__doc__ or "") if self._file else ""

    @cached_property
    def bad(self) -> dict[str, str]:
        return _named(self._file, "BAD") if self._file else {}

    @cached_property
    def good(self) -> dict[str, str]:
        return _named(self._file, "GOOD") if self._file else {}

    @property
    def summary(self) -> str:
        """The first sentence of the documentation."""
        return self.doc.split("\n\n", 1)[0].replace("\n", " ")

    def sections(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for part in self.doc.split("\n## ")[1:]:
            title, _, body = part.partition("\n")
            found[title.strip()] = body.strip()
        return found

    def finding(
        self,
        message: str,
        at: Event | Location | None,
        *,
        evidence: Mapping[str, object] | None = None,
        fix: str | Fix | None = None,
        confidence: float = 0.9,
        severity: Severity | None = None,
        subject: str = "",
        also: Iterable[Event] = (),
    ) -> Finding:
        return Finding(
            code=self.code,
            name=self.name,
            severity=severity or self.severity,
            kind=self.kind,
            message=message,
            location=at.where if isinstance(at, Event) else at,
            evidence=tuple(Evidence(label, str(value)) for label, value in (evidence or {}).items()),
            fix=Fix(fix) if isinstance(fix, str) else fix,
            confidence=confidence,
            subject=subject,
            places=tuple(event.where for event in also),
        )

    def __repr__(self) -> str:
        return f"<{self.code} {self.name}>"


def _named(module: ModuleType, word: str) -> dict[str, str]:
    """`BAD` and any `BAD_SOMETHING` of a rule file, by a name fit for a test id."""
    return {
        name.lower(): value.lstrip("\n")
        for name, value in vars(module).items()
        if isinstance(value, str) and (name == word or name.startswith(word + "_"))
    }
