"""The runs that may be shown. A name from an address is looked up here, never joined to a path."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradclinic.errors import UsageError
from gradclinic.store.folder import files_of, runs_in
from gradclinic.store.reader import StoredRun, read, state_of

_POINTS, _COLUMNS = 1500, 240
"""A live figure is drawn again and again, so it holds a little less than one on paper."""


class NoSuchRun(UsageError):
    pass


@dataclass(frozen=True)
class Catalogue:
    place: Path
    """A project, a folder of runs, one run, or one file of it."""

    def names(self) -> list[str]:
        return list(self._files())

    def path(self, name: str) -> Path:
        try:
            return self._files()[name]
        except KeyError:
            raise NoSuchRun(f"there is no run {name}") from None

    def version(self, name: str) -> str:
        """Changes whenever the run was written."""
        return state_of(self.path(name))[1]

    def read(self, name: str) -> StoredRun:
        return read(self.path(name), points=_POINTS, columns=_COLUMNS)

    def listing(self) -> Iterator[dict[str, Any]]:
        """What the first page tells of each run; one that cannot be read is left out."""
        for name, path in self._files().items():
            try:
                run = read(path, points=2, columns=1)
            except UsageError:
                continue
            yield {"name": name, **_line(run)}

    def _files(self) -> dict[str, Path]:
        """Each process of a run by itself; the main one bears the name of the run."""
        if self.place.is_file():
            return {self.place.parent.name: self.place}
        found: dict[str, Path] = {}
        for run in runs_in(self.place):
            for number, path in enumerate(files_of(run)):
                found[f"{run.name}:{path.stem}" if number else run.name] = path
        return found


def _line(run: StoredRun) -> dict[str, Any]:
    last = [training.steps[-1] for training in run.trainings if training.steps]
    loss = last[0].loss if last else None
    summary = run.documents.get("diagnosis", {}).get("summary", {})
    words = [f"{summary[key]} {key}" for key in ("error", "warning") if summary.get(key)]
    return {
        "target": str(run.about.get("target", "")),
        "state": run.state,
        "started": run.about.get("started", 0.0),
        "updates": max((step.index + 1 for step in last), default=0),
        "loss": None if loss is None else f"{loss:.4g}",
        "worst": next((key for key in ("error", "warning") if summary.get(key)), ""),
        "verdict": ", ".join(words) or ("nothing found" if summary else "no diagnosis yet"),
    }
