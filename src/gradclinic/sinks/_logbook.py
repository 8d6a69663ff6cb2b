"""From what a recording tells of each update to what loggers show."""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import hypot, isfinite
from statistics import median

from gradclinic.facts import Actor
from gradclinic.facts.memory import MemoryAccount
from gradclinic.facts.training import Activation, Sample, Step, TensorInfo
from gradclinic.findings import Diagnosis, Finding, Severity
from gradclinic.sinks._sink import PREFIX, Sink

_FIRST_CHECKUP = 32
"""The update after which the run is diagnosed first, and again whenever their number has doubled."""
_RECENT = 100
"""Updates the clip rate is taken over."""
_NOT_EVERYWHERE = re.compile(r"[^-/\w.]")
"""What some logger does not allow in a name; all of them get the same."""


class Logbook:
    """Listens to a recording and writes into sinks: totals at every update, tensors at sampled ones."""

    def __init__(self, sinks: Sequence[Sink], diagnose: Callable[[], Diagnosis]) -> None:
        self._sinks = sinks
        self._diagnose = diagnose
        self._process = os.getpid()
        self._names: dict[str, str] = {}
        self._tensors: dict[str, tuple[TensorInfo, ...]] = {}
        self._latest: dict[str, Step] = {}
        self._clipped: dict[str, deque[bool]] = {}
        self._told: set[tuple[str, object, str]] = set()
        self._next_checkup = _FIRST_CHECKUP
        self._step = 0

    def introduced(self, optimizer: Actor, tensors: tuple[TensorInfo, ...]) -> None:
        # The first optimizer needs no name; one that joins later must not rename it.
        self._names.setdefault(optimizer.id, f"{PREFIX}{optimizer.name}/" if self._names else PREFIX)
        self._tensors[optimizer.id] = tensors

    def updated(self, optimizer: str, step: Step) -> None:
        if self._elsewhere or optimizer not in self._names:
            return
        self._latest[optimizer], self._step = step, step.index
        self._write(optimizer, step.index, self._totals(optimizer, step))
        if step.index + 1 >= self._next_checkup:
            self._next_checkup *= 2
            # A run that goes on may still get over a mere oddity.
            self._alert(f for f in self._diagnose().findings if f.severity.at_least(Severity.WARNING))

    def sampled(self, optimizer: str, sample: Sample) -> None:
        step = self._latest.get(optimizer)
        if self._elsewhere or step is None or step.index != sample.index:
            return
        tensors = self._tensors[optimizer]
        gradients = [(t.name, g) for t, g in zip(tensors, step.gradients, strict=False) if g >= 0]
        weights = [(t.name, w) for t, w in zip(tensors, sample.weights, strict=False) if w >= 0]
        ratios = list(_ratios(tensors, sample))
        matrices = [r for t, r in ratios if t.is_matrix and isfinite(r)]
        values = {f"gradient_norm/{name}": value for name, value in gradients}
        values |= {f"weight_norm/{name}": value for name, value in weights}
        values |= {f"update_ratio/{tensor.name}": ratio for tensor, ratio in ratios}
        if weights:
            values["weight_norm/total"] = hypot(*(value for _, value in weights))
        if matrices:
            values["update_ratio/typical"] = median(matrices)
        self._write(optimizer, sample.index, values)
        spread = {"gradient_norm": [v for _, v in gradients], "update_ratio": [r for _, r in ratios]}
        for name, each in spread.items():
            finite = [value for value in each if isfinite(value)]
            for sink in self._sinks if finite else ():
                sink.histogram(sample.index, f"{self._names[optimizer]}histogram/{name}", finite)

    def activated(self, optimizer: str, activations: tuple[Activation, ...]) -> None:
        if self._elsewhere or optimizer not in self._names:
            return
        for one in activations:
            layer = f"{one.kind}-{one.ordinal}"
            for sample in one.samples:
                measured = {f"dead_units/{layer}": sample.dead, f"saturated/{layer}": sample.pinned}
                self._write(optimizer, sample.index, measured)

    def weighed(self, memory: MemoryAccount) -> None:
        if not self._elsewhere:
            for sink in self._sinks:
                sink.scalars(self._step, {f"{PREFIX}memory_mb": memory.total / 1e6})

    def close(self, diagnosis: Diagnosis) -> None:
        """The last word."""
        if self._elsewhere:
            return
        self._alert(diagnosis.findings)
        for sink in self._sinks:
            sink.close()

    @property
    def _elsewhere(self) -> bool:
        """In a forked child, whose numbers are not those of this run."""
        return os.getpid() != self._process

    def _totals(self, optimizer: str, step: Step) -> dict[str, float]:
        clipped = self._clipped.setdefault(optimizer, deque(maxlen=_RECENT))
        if step.measured:
            clipped.append(step.clipped)
        rates = {f"rate/{group}": rate for group, rate in enumerate(step.rates)}
        found = {
            "loss": step.loss,
            "gradient_norm/total": step.norm if step.measured and not step.skipped else None,
            "scale": step.scale,
            "clip_rate": sum(clipped) / len(clipped) if clipped and step.limit is not None else None,
            "skipped": float(step.skipped) if step.scale is not None else None,
        }
        return rates | {name: value for name, value in found.items() if value is not None}

    def _write(self, optimizer: str, index: int, values: dict[str, float]) -> None:
        before = self._names[optimizer]
        named = {_NOT_EVERYWHERE.sub("_", before + name): value for name, value in values.items()}
        for sink in self._sinks:
            sink.scalars(index, named)

    def _alert(self, findings: Iterable[Finding]) -> None:
        for finding in findings:
            key = (finding.code, finding.location, finding.subject)
            if key not in self._told:
                self._told.add(key)
                for sink in self._sinks:
                    sink.alert(self._step, finding)


def _ratios(tensors: Sequence[TensorInfo], sample: Sample) -> Iterator[tuple[TensorInfo, float]]:
    """How far each tensor moved, as a share of its size."""
    for tensor, weight, update in zip(tensors, sample.weights, sample.updates, strict=False):
        if weight > 0 and update >= 0:
            yield tensor, update / weight
