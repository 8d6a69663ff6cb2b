"""Graphs: retained for a second backward, kept alive across updates, cut by checkpointing."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import nn
from torch.utils import checkpoint

from gradclinic.facts import Cut, CutKind, CutRole, Location
from gradclinic.facts.graphs import AnomalyMode, BareCheckpoint, KeptGraphs, RetainedGraph
from gradclinic.runtime import graph
from gradclinic.runtime.closeup.trail import tensors_in
from gradclinic.runtime.scene import Scene

_WALKS = 12
_LOOKS = (15, 30, 60)
_RECENT = 5
_MOST = 0.8
_MARK = "gradclinic"


class _Mark:
    """Put on a graph, to see whether it still exists."""


class Graphs:
    def __init__(self, scene: Scene) -> None:
        self._places = scene.recorder.places
        self._register = scene.register
        self._backwards = 0
        self._walks = 0
        self._retained = scene.retained
        self._used: set[Location] = set()
        self._roots: list[tuple[weakref.ref[_Mark], Location]] = []
        self._kept: KeptGraphs | None = None
        self._anomaly: Counter[Location] = Counter()
        self._bare: Counter[tuple[Location, str]] = Counter()
        self._behind: dict[int, Location] = {}
        """Parameters of what was checkpointed that way, by identity."""

    def backward(
        self,
        tensors: torch.Tensor | Sequence[torch.Tensor],
        grad_tensors: Any = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        self._backwards += 1
        roots = list(tensors_in([tensors]))
        if torch.is_anomaly_enabled() and torch.is_anomaly_check_nan_enabled():
            # Without the check it is our own, on the first updates, for the lines of the graph.
            self._anomaly[self._places.here()] += 1
        self._reuse(roots, bool(retain_graph) and not create_graph)
        if self._backwards <= _LOOKS[-1] and roots:
            self._mark(roots[0])
        if self._backwards in _LOOKS:
            self._look_at_old_roots()

    def gradient(self, outputs: Any, *args: Any, **kwargs: Any) -> None:
        self._reuse(list(tensors_in([outputs])), False)

    def checkpointed(
        self, function: Any, *args: Any, use_reentrant: bool | None = None, **kwargs: Any
    ) -> None:
        owner = function if isinstance(function, nn.Module) else getattr(function, "__self__", None)
        if use_reentrant is False or not torch.is_grad_enabled() or not isinstance(owner, nn.Module):
            return
        if any(t.requires_grad for t in tensors_in(args)) or not any(
            p.requires_grad for p in owner.parameters()
        ):
            return
        here = self._places.here()
        self._bare[here, type(owner).__name__] += 1
        for parameter in owner.parameters():
            self._behind[id(parameter)] = here

    def tell(self) -> Iterator[object]:
        for where, graphs in self._retained.items():
            yield RetainedGraph(where, len(graphs), where in self._used, max(map(len, graphs)))
        if self._kept is not None:
            yield self._kept
        for where, count in self._anomaly.items():
            yield AnomalyMode(where, count, self._backwards)
        for address, where in self._behind.items():
            entry = self._register.entries.get(address)
            if entry is not None:
                entry.cut = Cut(CutKind.CHECKPOINT, CutRole.PATH, where, where)
        for (where, module), count in self._bare.items():
            yield BareCheckpoint(where, module, count)

    def _reuse(self, roots: list[torch.Tensor], retained: bool) -> None:
        if self._walks >= _WALKS or not (retained or self._retained):
            return
        self._walks += 1
        nodes = graph.operations(roots)
        for where, graphs in self._retained.items():
            if any(nodes & earlier for earlier in graphs):
                self._used.add(where)
        if retained:
            self._retained.setdefault(self._places.here(), []).append(nodes)

    def _mark(self, root: torch.Tensor) -> None:
        """Lives as long as the graph: the sum a loss was added to keeps it too, without the loss itself."""
        if root.grad_fn is not None:
            metadata: Any = root.grad_fn.metadata  # declared a method, and is a dictionary
            mark = metadata[_MARK] = _Mark()
            self._roots.append((weakref.ref(mark), self._places.here()))

    def _look_at_old_roots(self) -> None:
        old = self._roots[:-_RECENT]
        alive = [where for mark, where in old if mark() is not None]
        if alive and len(alive) >= _MOST * len(old):
            self._kept = KeptGraphs(alive[0], len(alive), len(old))


def install(scene: Scene) -> None:
    graphs = Graphs(scene)
    scene.wrap(torch.autograd, "backward", scope="graph backward", before=graphs.backward)
    scene.wrap(torch.autograd, "grad", scope="graph grad", before=graphs.gradient)
    scene.wrap(checkpoint, "checkpoint", scope="checkpointing", before=graphs.checkpointed)
    scene.facts.insert(0, graphs.tell)

