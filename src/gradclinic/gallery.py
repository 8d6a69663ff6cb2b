"""The bundled patients: small training scripts and a compiled model, sick and healthy, that `demo` shows."""

from __future__ import annotations

import ast
import shutil
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
    path: Path
    """A script, or a folder of modules."""
    examinations: tuple[tuple[str, ...], ...]
    """The commands that are shown, to be run beside the patient's file or folder."""

    def come_to(self, ward: Path) -> None:
        """Copy what the patient is made of into a folder."""
        if self.path.is_dir():
            no_caches = shutil.ignore_patterns("__pycache__")
            shutil.copytree(self.path, ward / self.path.name, ignore=no_caches, dirs_exist_ok=True)
        else:
            shutil.copy(self.path, ward)


def patients() -> tuple[Patient, ...]:
    """The sick first, then the healthy, each by name."""
    everyone = [*(_script(path) for path in HOME.glob("*.py")), _force_field()]
    return tuple(sorted(everyone, key=lambda patient: (not patient.finding, patient.name)))


def _script(path: Path) -> Patient:
    doc = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    told, _, finding = doc.rpartition("finding: ")
    complaint, _, story = told.strip().partition("\n\n")
    return Patient(
        path.stem,
        complaint,
        story,
        "" if finding == HEALTHY else finding,
        path,
        (("lint", path.name), ("run", path.name)),
    )


def _force_field() -> Patient:
    return Patient(
        "compiled_force_field",
        "Compiled, my force field predicts the same energies and forces, and learns worse.",
        "Forces are gradients taken inside the model, so their loss needs second derivatives.\n"
        "The losses together still give every parameter a gradient: nothing looks lost.",
        "GC807",
        _potential(),
        (("probe", "compile", f"{_potential().name}/cases.py:detach_kept"),),
    )


def _potential() -> Path:
    """In an installed package beside the scripts; in a checkout among the examples."""
    installed = HOME / "potential"
    return installed if installed.is_dir() else Path(__file__).parents[2] / "examples" / "potential"
