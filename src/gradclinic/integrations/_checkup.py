"""What the callbacks of all frameworks do: watch from the beginning of training to its end, then report."""

from __future__ import annotations

import sys
from collections.abc import Iterable

import torch
from torch import nn

from gradclinic.findings import Diagnosis
from gradclinic.watching import Monitor, watch


class Watching:
    def __init__(self, to: object = None) -> None:
        """`to` is where numbers and alerts go besides, as in `gradclinic.watch`."""
        self.diagnosis: Diagnosis | None = None
        """What was found, once training has ended."""
        self._to = to
        self._monitor: Monitor | None = None

    def begin(self, model: nn.Module | None, optimizers: Iterable[torch.optim.Optimizer] = ()) -> None:
        if self._monitor is None:
            self._monitor = watch(model, *optimizers, to=self._to)

    def end(self, *, report: bool = True) -> None:
        """Stop watching; findings are printed to stderr, health is not."""
        monitor, self._monitor = self._monitor, None
        if monitor is None:
            return
        monitor.stop()
        self.diagnosis = monitor.diagnose()
        if report and self.diagnosis.findings:
            print(self.diagnosis, file=sys.stderr)
