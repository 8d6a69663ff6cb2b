"""What `run --log` sets up: the numbers of the run in the logger people look at."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from gradclinic.commands._diagnosing import diagnose
from gradclinic.config import Config
from gradclinic.findings import Diagnosis, Summary
from gradclinic.runtime import Recording
from gradclinic.sinks import Logbook, open_sink


class Log:
    def __init__(self, names: Sequence[str], recording: Recording, target: str, config: Config) -> None:
        self._recording, self._target, self._config = recording, target, config
        self._book: Logbook | None = None
        if names:
            self._book = Logbook([open_sink(name) for name in names], lambda: self._diagnosis(ended=False))
            recording.listen(self._book)

    def finish(self) -> None:
        """The last alerts. That they could not be written is said in one line, and harms nothing."""
        if self._book is None:
            return
        try:
            self._book.close(self._diagnosis(ended=True))
        except Exception as error:  # whatever a logger may raise when its disk or server is gone
            print(f"gradclinic: the log is not complete: {type(error).__name__}: {error}", file=sys.stderr)

    def _diagnosis(self, *, ended: bool) -> Diagnosis:
        seen = [self._recording.observation(ended=ended)]
        steps = Summary(steps=self._recording.steps)
        return diagnose(self._target, seen, self._config, steps, self._recording.problems)
