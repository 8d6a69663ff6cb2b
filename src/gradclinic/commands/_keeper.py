"""What `run` sets up to keep a run on disk, in the process that trains."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from gradclinic import __version__
from gradclinic.checkups import keep_checkups
from gradclinic.commands._diagnosing import diagnose
from gradclinic.config import Config
from gradclinic.findings import Diagnosis, Summary
from gradclinic.runtime import Recording
from gradclinic.store.events import Events
from gradclinic.store.writer import Store


class Keeper:
    def __init__(
        self,
        folder: Path | None,
        recording: Recording,
        words: Sequence[str],
        config: Config,
        rank: Callable[[], int | None] = lambda: 0,
    ) -> None:
        """`folder` is None for a run that is not to be kept."""
        self._store: Store | None = None
        if folder is None:
            return

        def so_far() -> Diagnosis:
            seen = [recording.observation(ended=False)]
            return diagnose(words[0], seen, config, Summary(steps=recording.steps), recording.problems)

        about = {"target": words[0], "arguments": list(words[1:]), "version": __version__}
        self._store = Store(folder, about, rank)
        recording.listen(self._store)
        keep_checkups(self._store, so_far)

    @property
    def events(self) -> Events | None:
        """Those that are kept, for others to show."""
        return None if self._store is None else self._store.events

    def finish(self, *, quiet: bool) -> Path | None:
        """Where the run is kept. That it could not be is said in one line, and harms nothing."""
        if self._store is None:
            return None
        self._store.finish()
        if self._store.problem and not quiet:
            print(f"gradclinic: {self._store.problem}", file=sys.stderr)
        return None if self._store.problem else self._store.folder
