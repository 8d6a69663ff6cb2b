"""A callback for the Trainer of transformers: `Trainer(..., callbacks=[Checkup()])`."""

from __future__ import annotations

from typing import Any

from transformers import TrainerCallback

from gradclinic.integrations._checkup import Watching


class Checkup(TrainerCallback):
    """Watches `train` and prints what is wrong when it ends."""

    def __init__(self, to: object = None) -> None:
        self._watching = Watching(to)

    @property
    def diagnosis(self) -> Any:
        """The diagnosis of the last `train`; None before."""
        return self._watching.diagnosis

    def on_train_begin(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        optimizer = given.get("optimizer")
        inner = getattr(optimizer, "optimizer", optimizer)
        self._watching.begin(given.get("model"), [inner] if inner is not None else [])

    def on_train_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        self._watching.end(report=state.is_world_process_zero)
