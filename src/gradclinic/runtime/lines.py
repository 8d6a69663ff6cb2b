"""Which source line made a node of the autograd graph.

Torch notes the Python stack of every node while anomaly mode is on, at several times the cost of the
step. So it is on for the first updates only; later graphs of the same shape are read off the first one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import torch

from gradclinic.facts import Location
from gradclinic.runtime.places import Places

Node = Any
_FRAME = re.compile(r'File "(?P<file>.*)", line (?P<line>\d+), in (?P<function>.*)')
_BACKWARDS = 8
_UPDATES = 2


class Lines:
    def __init__(self, places: Places) -> None:
        self._places = places
        self._trails: dict[Location, list[tuple[str, Location | None]]] = {}
        self._on = False
        self._compiled = False
        self._backwards = 0
        self._updates = 0

    def optimizer_built(self) -> None:
        """From here on training is near."""
        if self._backwards or self._updates or self._compiled or torch.is_anomaly_enabled():
            return
        torch.set_anomaly_enabled(True, False)
        self._on = True

    def model_compiled(self) -> None:
        """A compiled model makes its own graph in its own ways; nothing is asked of it."""
        self._compiled = True
        self.stop()

    def backward_done(self) -> None:
        self._backwards += 1
        if self._backwards >= _BACKWARDS:
            self.stop()

    def update_done(self) -> None:
        self._updates += 1
        if self._updates >= _UPDATES:
            self.stop()

    def stop(self) -> None:
        if self._on:
            self._on = False
            if not torch.is_anomaly_check_nan_enabled():
                # Otherwise the user has asked for anomaly mode meanwhile, and it stays.
                torch.set_anomaly_enabled(False)

    def learn(self, site: Location, nodes: Sequence[Node]) -> None:
        """Remember the lines of a graph, in forward order, that the loss at `site` is made by."""
        if self._on:
            self._trails[site] = [(node.name(), self._noted(node)) for node in nodes]

    def of(self, site: Location, nodes: Sequence[Node], position: int) -> Location | None:
        """The line of `nodes[position]`, by its own note or by the graph first seen from here."""
        noted = self._noted(nodes[position])
        if noted is not None:
            return noted
        trail = self._trails.get(site, [])
        name = nodes[position].name()
        if len(trail) == len(nodes) and trail[position][0] == name:
            return trail[position][1]
        candidates = {where for known, where in trail if known == name and where is not None}
        return candidates.pop() if len(candidates) == 1 else None

    def trail(self, site: Location) -> list[tuple[str, Location | None]]:
        return self._trails.get(site, [])

    def _noted(self, node: Node) -> Location | None:
        """The user's innermost frame when the node was made."""
        for entry in reversed(node.metadata.get("traceback_", ())):
            frame = _FRAME.search(entry)
            if frame is not None and self._places.is_users(frame["file"]):
                return self._places.named(frame["file"], int(frame["line"]), frame["function"])
        return None
