"""A tracker for Accelerate: `Accelerator(log_with=Checkup())`, `init_trackers`, and `end_training`."""

from __future__ import annotations

from typing import Any

from accelerate.tracking import GeneralTracker

from gradclinic.integrations._checkup import Watching


class Checkup(GeneralTracker):
    """Watches from `accelerator.init_trackers(...)` to `accelerator.end_training()`, then reports."""

    name = "gradclinic"
    requires_logging_directory = False

    def __init__(self, to: object = None) -> None:
        super().__init__()
        self._watching = Watching(to)

    @property
    def tracker(self) -> Any:
        return self._watching

    @property
    def diagnosis(self) -> Any:
        """What was found; None before `end_training`."""
        return self._watching.diagnosis

    def start(self) -> None:
        self._watching.begin(None)

    def store_init_configuration(self, values: dict[str, Any]) -> None:
        self._watching.begin(None)

    def finish(self) -> None:
        self._watching.end()
