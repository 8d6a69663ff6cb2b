"""A callback for Lightning Fabric: `Fabric(callbacks=[Checkup()])`, and `fabric.call("on_train_end")`."""

from __future__ import annotations

from typing import Any

from gradclinic.integrations._checkup import Watching


class Checkup:
    """Watches from `fabric.setup` on; the loop is the user's, so the user says when it is over."""

    def __init__(self, to: object = None) -> None:
        self._watching = Watching(to)
        self._first = True

    @property
    def diagnosis(self) -> Any:
        """What was found; None before `on_train_end`."""
        return self._watching.diagnosis

    def on_after_setup(self, fabric: Any, module: Any) -> None:
        self._first = fabric.is_global_zero
        self._watching.begin(None)

    def on_train_end(self) -> None:
        self._watching.end(report=self._first)
