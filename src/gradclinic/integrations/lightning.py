"""A callback for Lightning's Trainer: `Trainer(callbacks=[Checkup()])`."""

from __future__ import annotations

from typing import Any

from lightning.pytorch import Callback

from gradclinic.integrations._checkup import Watching


class Checkup(Callback):
    """Watches `fit` and prints what is wrong when it ends, by itself or by an error."""

    def __init__(self, to: object = None) -> None:
        super().__init__()
        self._watching = Watching(to)

    @property
    def diagnosis(self) -> Any:
        """The diagnosis of the last `fit`; None before."""
        return self._watching.diagnosis

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        self._watching.begin(pl_module, trainer.optimizers)

    def on_fit_end(self, trainer: Any, pl_module: Any) -> None:
        self._watching.end(report=trainer.is_global_zero)

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self._watching.end(report=trainer.is_global_zero)
