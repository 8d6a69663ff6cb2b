"""What the looks at one optimizer's graphs add up to."""

from __future__ import annotations

from dataclasses import dataclass, field

from gradclinic.facts import Location
from gradclinic.facts.training import Activation, ActivationSample, Origin
from gradclinic.runtime.statistics.activations import Measured
from gradclinic.runtime.statistics.inspector import Reading
from gradclinic.thinning import Thinned


@dataclass
class _Series:
    first: Measured
    where: Location | None
    samples: Thinned[ActivationSample] = field(default_factory=lambda: Thinned(8, 8, 16))


class Signals:
    def __init__(self) -> None:
        self.sense = 0
        self.suspect: Origin | None = None
        self._activations: dict[tuple[str, int], _Series] = {}

    def take(self, reading: Reading, index: int, candidate: Origin | None) -> None:
        self.sense = reading.sense
        self.suspect = reading.suspect or self.suspect or candidate
        for one, where in reading.activations:
            series = self._activations.setdefault((one.kind, one.ordinal), _Series(one, where))
            series.samples.append(ActivationSample(index, one.dead, one.pinned, one.size))

    def activations(self) -> tuple[Activation, ...]:
        return tuple(
            Activation(
                kind, ordinal, series.where, series.first.hidden, series.first.units, series.samples.rows()
            )
            for (kind, ordinal), series in sorted(
                self._activations.items(), key=lambda one: one[1].first.position
            )
        )
