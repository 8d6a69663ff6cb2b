"""Watching the training of a program from inside it: one line before the loop, a diagnosis at any time."""

from __future__ import annotations

import time
from types import TracebackType

import torch
from torch import nn

from gradclinic.engine import judge
from gradclinic.findings import Diagnosis, Summary
from gradclinic.judged import judged
from gradclinic.runtime import Recording


def watch(model: nn.Module, *optimizers: torch.optim.Optimizer) -> Monitor:
    """Observe what follows: `monitor = watch(model, optimizer)` before the loop, `monitor.diagnose()` after.

    Training is not changed by it. All models and optimizers of the process are seen; those given here
    are known by these names from the first update on. `monitor.stop()`, or the end of a `with` block,
    puts torch back as it was.
    """
    return Monitor(model, optimizers)


class Monitor:
    """A running observation."""

    def __init__(self, model: nn.Module, optimizers: tuple[torch.optim.Optimizer, ...]) -> None:
        self._recording = Recording()
        self._recording.complete = False
        self._recording.__enter__()
        self._recording.introduce(model, optimizers)
        self._target = type(model).__name__
        self._began = time.monotonic()

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
        self._recording.__exit__(None, None, None)

    def __enter__(self) -> Monitor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
