"""Where runs lie: `.gradclinic/runs/<time>-<script>/`, one file per process."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

from gradclinic.errors import UsageError

HOME = ".gradclinic"
SUFFIX = ".sqlite"
MAIN = "rank0"
_LONGEST = 40


def new_run(target: str, start: Path) -> Path:
    """A folder name that no run below `start` has; nothing is made on disk yet."""
    word = re.sub(r"[^A-Za-z0-9_.]+", "-", Path(target).stem or target).strip("-.")[:_LONGEST] or "run"
    name = f"{time.strftime('%Y%m%d-%H%M%S')}-{word}"
    runs = start / HOME / "runs"
    taken, count = runs / name, 1
    while taken.exists():
        count += 1
        taken = runs / f"{name}-{count}"
    return taken


def make(folder: Path) -> None:
    """The folder of a run, in a home that version control leaves alone."""
    folder.mkdir(parents=True, exist_ok=True)
    ignore = folder.parent.parent / ".gitignore"
    if folder.parent.parent.name == HOME and not ignore.exists():
        ignore.write_text("*\n", encoding="utf-8")


def file_of(rank: int | None, folder: Path) -> Path:
    """The file of this process: by its rank, or by its number when it has none."""
    name = f"rank{rank}" if rank is not None else f"process{os.getpid()}"
    path, count = folder / f"{name}{SUFFIX}", 1
    while path.exists():
        # A launcher that starts a rank anew starts a new file.
        count += 1
        path = folder / f"{name}-{count}{SUFFIX}"
    return path


def runs_in(place: Path) -> list[Path]:
    """Folders of runs at or below a project, a `.gradclinic` or a run itself, the latest first."""
    for base in (place / HOME / "runs", place / "runs", place):
        found = [folder for folder in _subfolders(base) if any(files_of(folder))]
        if found:
            return sorted(found, key=lambda folder: (_begun(folder), folder.name), reverse=True)
    return [place] if any(files_of(place)) else []


def files_of(run: Path) -> Iterator[Path]:
    """The files of a run, the main process first."""
    if run.is_dir():
        found = [path for path in run.iterdir() if path.suffix == SUFFIX and path.is_file()]
        yield from sorted(found, key=_rank_order)


def resolve(word: str | None) -> Path:
    """The file a user means by a run folder, a file, a project, or nothing: then the latest here."""
    place = Path(word or ".")
    if place.is_file():
        return place
    if not place.exists():
        raise UsageError(f"{place} does not exist; give a run folder, such as {HOME}/runs/…, or nothing")
    own = next(files_of(place), None)
    if own is not None:
        return own
    latest = next(iter(runs_in(place)), None)
    if latest is None:
        where = "here" if word is None else f"in {place}"
        raise UsageError(f"there is no run {where}; `gradclinic run train.py` records one in {HOME}/")
    return next(files_of(latest))


def _subfolders(base: Path) -> list[Path]:
    return [path for path in base.iterdir() if path.is_dir()] if base.is_dir() else []


def _begun(run: Path) -> float:
    return max((path.stat().st_mtime for path in files_of(run)), default=0.0)


def _rank_order(path: Path) -> tuple[bool, int, str]:
    number = re.fullmatch(r"rank(\d+).*", path.stem)
    return (number is None, int(number[1]) if number else 0, path.name)
