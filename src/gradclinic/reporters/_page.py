"""What a report may tell about a rule, without knowing rules."""

from __future__ import annotations

from gradclinic.findings import Severity
from gradclinic.frozen import frozen


@frozen
class Page:
    severity: Severity
    summary: str
    markdown: str
