"""What a logger has to take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from gradclinic.findings import Finding

PREFIX = "gradclinic/"
"""Before every name, so that nothing of the user's own is overwritten."""


@runtime_checkable
class Sink(Protocol):
    """Called from inside the user's training loop. `step` counts updates from 0."""

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Numbers of one update, by name."""

    def histogram(self, step: int, name: str, values: Sequence[float]) -> None:
        """One number of each tensor; left out where the logger has no histograms."""

    def alert(self, step: int, finding: Finding) -> None:
        """Something is wrong, told once."""

    def close(self) -> None:
        """Nothing more will come. What the user opened stays open."""


def alert_name(finding: Finding) -> str:
    return f"{PREFIX}alert/{finding.code}-{finding.name}"


def alert_text(finding: Finding) -> str:
    """The message, the place and the fix, one to a line."""
    place = f"at {finding.location}" if finding.location else ""
    fix = f"fix: {finding.fix.text}" if finding.fix else ""
    return "\n".join(line for line in (finding.message, place, fix) if line)
