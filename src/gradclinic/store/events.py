"""What of a run deserves a mark in its pictures."""

from __future__ import annotations

import math
import time

from gradclinic.facts.training import Step

_MOST = 500
_MOST_OF_A_KIND = 150
_SPIKE = 10
"""Times the usual gradient norm."""
_SETTLED = 20
"""Updates before anything counts as usual."""


class Events:
    def __init__(self) -> None:
        self._pending: list[tuple[int, float, str, str, str]] = []
        self._told: set[tuple[str, str]] = set()
        self._counts: dict[str, int] = {}
        self._usual: dict[str, float] = {}
        self.latest = ""
        """The words of the last one."""

    def look_at(self, optimizer: str, step: Step) -> None:
        if step.skipped:
            self.add(step.index, "skipped", "warning", "the scaler skipped this update", again=True)
        elif step.loss is not None and not math.isfinite(step.loss):
            self.add(step.index, "non-finite", "error", f"the loss is {step.loss}")
        elif not math.isfinite(step.norm):
            self.add(step.index, "non-finite", "error", f"the gradient norm is {step.norm}")
        elif step.measured:
            usual = self._usual.get(optimizer, step.norm)
            if step.index > _SETTLED and 0 < usual * _SPIKE < step.norm:
                words = f"gradient norm {step.norm:.3g}, {step.norm / usual:.0f} times the usual {usual:.3g}"
                self.add(step.index, "spike", "warning", words)
            self._usual[optimizer] = 0.9 * usual + 0.1 * step.norm

    def add(self, step: int, kind: str, severity: str, text: str, *, again: bool = False) -> None:
        """`again`: the same words may be said of another step."""
        if (kind, text) in self._told and not again:
            return
        count = self._counts.get(kind, 0)
        if count < _MOST_OF_A_KIND and sum(self._counts.values()) < _MOST:
            self._counts[kind] = count + 1
            self._told.add((kind, text))
            self.latest = f"{text} (update {step})"
            self._pending.append((step, time.time(), kind, severity, text))

    def taken(self) -> list[tuple[int, float, str, str, str]]:
        """Those not taken yet."""
        taken, self._pending = self._pending, []
        return taken
