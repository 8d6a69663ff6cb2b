"""What the processes of a watched command find in their environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

FOLDER = "GRADCLINIC_RECORDS"
"""The folder for records; a process without it is not watched."""
START = "GRADCLINIC_START"
"""The directory the user called gradclinic from: what places are told relative to."""
STORE = "GRADCLINIC_STORE"
"""The folder the run is kept in; unset when it is not kept."""
STEPS = "GRADCLINIC_STEPS"
"""After how many optimizer steps a process ends; unset for no limit."""
BOOTSTRAP = Path(__file__).parent / "bootstrap"


def watched(
    environment: Mapping[str, str], folder: Path, step_limit: int | None, store: Path | None = None
) -> dict[str, str]:
    """`environment` for processes that are to be watched."""
    path = [str(BOOTSTRAP), *filter(None, [environment.get("PYTHONPATH")])]
    added = {FOLDER: str(folder), START: os.getcwd(), "PYTHONPATH": os.pathsep.join(path)}
    if step_limit is not None:
        added[STEPS] = str(step_limit)
    if store is not None:
        added[STORE] = str(store)
    return {**environment, **added}


def leave_alone() -> None:
    """Whoever watches this process from outside lets go: it is about to be watched from within."""
    os.environ.pop(FOLDER, None)
    os.environ.pop(STORE, None)


def launched_rank() -> int | None:
    """The rank that torchrun, or a launcher like it, gave this process."""
    rank = os.environ.get("RANK", "")
    return int(rank) if rank.isdecimal() and os.environ.get("WORLD_SIZE", "").isdecimal() else None


def world() -> str:
    """Names the group of processes this one trains with: equal on all its ranks on this machine."""
    if launched_rank() is None:
        return f"children of {os.getppid()}"
    words = ("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT")
    return " ".join(os.environ.get(word, "") for word in words)
