"""What a report may tell about a rule, without knowing rules."""

from __future__ import annotations

from dataclasses import dataclass

from gradclinic.findings import Severity


@dataclass(frozen=True, slots=True)
class Page:
    severity: Severity
    summary: str
    markdown: str
