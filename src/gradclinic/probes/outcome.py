"""What every kind of probe hands back to the command."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

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
    picture: str = ""
    """For the terminal."""
    steps: int = 0
    """Updates made."""

    def observation(self) -> Observation:
        return Observation(Source.PROBE, tuple((fact,) for fact in self.facts), self.gaps)

    def measured(self) -> dict[str, Any]:
        """The facts by name, ready for JSON, which has no NaN."""
        return {type(fact).__name__: _plain(asdict(fact)) for fact in self.facts}  # type: ignore[call-overload]


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items() if key != "via"}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
