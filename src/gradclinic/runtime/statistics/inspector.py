"""A look at the graph of a loss before its backward: at first, now and then, and when it broke."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

import torch

from gradclinic.facts import Location
from gradclinic.facts.training import Origin
from gradclinic.runtime.lines import Lines
from gradclinic.runtime.statistics import activations, numerics
from gradclinic.runtime.statistics.objective import sense

_FIRST = 5
_OFTEN, _OFTEN_UNTIL = 20, 200
_SELDOM = 100


@dataclass(frozen=True, slots=True)
class Reading:
    sense: int = 0
    broken: bool = False
    """The loss is not finite."""
    origin: Origin | None = None
    suspect: Origin | None = None
    """An operation with an infinite slope at a value it was given."""
    activations: tuple[tuple[activations.Measured, Location | None], ...] = ()


class Inspector:
    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self._looks: Counter[Location] = Counter()
        self.packed = False
        """Saved tensors go through hooks, as under checkpointing: to look at one would recompute it."""

    def look(self, root: torch.Tensor, loss: torch.Tensor, where: Location, *, odd: bool) -> Reading | None:
        """`loss` is `root` without its scale. None when it is not the time to look."""
        count = self._looks[where]
        self._looks[where] += 1
        # Reading a value on an accelerator would wait for it; there the update's own transfer tells.
        broken = loss.device.type == "cpu" and not math.isfinite(float(loss))
        due = count < _FIRST or count % (_OFTEN if count < _OFTEN_UNTIL else _SELDOM) == 0
        if root.grad_fn is None or not (due or broken or odd):
            return None
        with torch.no_grad():
            return self._read(root, where, broken=broken)

    def _read(self, root: torch.Tensor, where: Location, *, broken: bool) -> Reading:
        nodes = numerics.forward_order(root.grad_fn)
        self._lines.learn(where, nodes)
        if self.packed or not nodes:
            return Reading(broken=broken)
        slope = next(numerics.infinite_slopes(nodes), None)
        return Reading(
            sense=sense(root.grad_fn),
            broken=broken,
            origin=self._origin(where, nodes) if broken else None,
            suspect=None if slope is None else self._named(where, nodes, *slope),
            activations=tuple(
                (one, self._lines.of(where, nodes, one.position)) for one in activations.measure(nodes)
            ),
        )

    def candidate(self, where: Location) -> Origin | None:
        """The only kind of operation seen below this loss that can have an infinite slope."""
        found = {
            (kind, line)
            for name, line in self._lines.trail(where)
            if (kind := numerics.operation_of(name)) in numerics.STEEP_AT_AN_EDGE and line is not None
        }
        if len(found) != 1:
            return None
        kind, line = found.pop()
        return Origin(kind, line, f"the slope of {kind} is infinite at the edge of its domain", certain=False)

    def _origin(self, where: Location, nodes: list[numerics.Node]) -> Origin | None:
        found = numerics.first_broken(nodes)
        data = numerics.broken_data(nodes)
        if data is not None and (found is None or data <= found[0]):
            return self._named(where, nodes, data, "the data it was given is not finite")
        return None if found is None else self._named(where, nodes, *found)

    def _named(self, where: Location, nodes: list[numerics.Node], position: int, why: str) -> Origin:
        return Origin(
            numerics.operation(nodes[position]),
            self._lines.of(where, nodes, position),
            why,
            overflow=why.endswith(numerics.OUT_OF_RANGE),
        )
