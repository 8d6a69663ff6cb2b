"""Watching the training of a program from inside it: one line before the loop, a diagnosis at any time."""

from __future__ import annotations

import time
from pathlib import Path
from types import TracebackType

import torch
from torch import nn

from gradclinic.checkups import keep_checkups
from gradclinic.engine import judge
from gradclinic.findings import Diagnosis, Summary
from gradclinic.judged import judged
from gradclinic.keeping import keep_diagnosis
from gradclinic.runtime import Recording
from gradclinic.sinks import Logbook, Sink, sinks_of
from gradclinic.store.folder import new_run
from gradclinic.store.writer import Store


def watch(
    model: nn.Module | None = None,
    *optimizers: torch.optim.Optimizer,
    to: object = None,
    keep: bool = False,
) -> Monitor:
    """Observe what follows: `monitor = watch(model, optimizer)` before the loop, `monitor.diagnose()` after.

    Training is not changed by it. All models and optimizers of the process are seen; those given here
    are known by these names from the first update on. `monitor.stop()`, or the end of a `with` block,
    puts torch back as it was.

    The numbers of the run and its alerts go into `to`, if given: a `SummaryWriter`, a run of wandb,
    mlflow or trackio, any of those modules, a `gradclinic.sinks.Sink`, or a list of them. With `keep` they
    also go into `.gradclinic/`, for `gradclinic report` and `gradclinic dashboard`.
    """
    return Monitor(model, optimizers, sinks_of(to), keep=keep)


class Monitor:
    """A running observation."""

    def __init__(
        self,
        model: nn.Module | None,
        optimizers: tuple[torch.optim.Optimizer, ...],
        sinks: tuple[Sink, ...] = (),
        *,
        keep: bool = False,
    ) -> None:
        self._recording = Recording()
        self._recording.complete = False
        self._recording.__enter__()
        self._recording.introduce(model, optimizers)
        self._logbook = Logbook(sinks, self.diagnose) if sinks else None
        if self._logbook is not None:
            self._recording.listen(self._logbook)
        self._target = type(model).__name__ if model is not None else "training"
        self._began = time.monotonic()
        self._store = Store(new_run(self._target, Path.cwd()), {"target": self._target}) if keep else None
        if self._store is not None:
            self._recording.listen(self._store)
            keep_checkups(self._store, self.diagnose)

    def diagnose(self) -> Diagnosis:
        """What is wrong so far, the likeliest cause first."""
        observation = self._recording.observation()
        findings = judge([observation])
        looked_at = judged([observation], findings)
        return Diagnosis(
            command="watch",
            target=self._target,
            findings=findings,
            judged=looked_at.topics,
            checklist=looked_at.checklist,
            summary=Summary(steps=self._recording.steps, elapsed_s=round(time.monotonic() - self._began, 3)),
            problems=self._recording.problems,
        )

    def stop(self) -> None:
        """Observe no more; what was seen can still be diagnosed."""
        if not self._recording.watching:
            return
        self._recording.__exit__(None, None, None)
        if self._logbook is not None:
            self._logbook.close(self.diagnose())
        if self._store is not None:
            self._store.finish()
            keep_diagnosis(self._store.folder, self.diagnose(), [self._recording.observation()])

    def __enter__(self) -> Monitor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
