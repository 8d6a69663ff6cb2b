"""The bundled patients: small training scripts, sick and healthy, that `demo` shows."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

HOME = Path(__file__).parent / "patients"
HEALTHY = "none"


@dataclass(frozen=True, slots=True)
class Patient:
    name: str
    complaint: str
    story: str
    finding: str
    """The code that must come first; empty for a healthy run."""

    @property
    def path(self) -> Path:
        return HOME / f"{self.name}.py"


def patients() -> tuple[Patient, ...]:
    """The sick first, then the healthy, each by name."""
    everyone = [_admit(path) for path in HOME.glob("*.py")]
    return tuple(sorted(everyone, key=lambda patient: (not patient.finding, patient.name)))


def _admit(path: Path) -> Patient:
    doc = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    told, _, finding = doc.rpartition("finding: ")
    complaint, _, story = told.strip().partition("\n\n")
    return Patient(path.stem, complaint, story, "" if finding == HEALTHY else finding)
