"""What every kind of probe hands back to the command."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gradclinic.facts import Observation, Source
from gradclinic.findings.table import Table


@dataclass(frozen=True)
class Outcome:
    facts: tuple[object, ...]
    """For the rules to judge."""
    conclusion: str
    """What was learnt, in one line with its numbers."""
    tables: tuple[Table, ...] = ()
    gaps: Mapping[str, str] = field(default_factory=dict)
    """What could not be measured and why, by topic."""

    def observation(self) -> Observation:
        return Observation(Source.PROBE, tuple((fact,) for fact in self.facts), self.gaps)
