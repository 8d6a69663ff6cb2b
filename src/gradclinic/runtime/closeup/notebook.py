"""What is written down about the functions of the first steps, and the facts it amounts to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from gradclinic.facts.cut import Cut, CutKind, CutRole
from gradclinic.facts.location import Location
from gradclinic.facts.loss import DomainEdge, Op
from gradclinic.runtime import graph
from gradclinic.runtime.closeup.averages import Averages
from gradclinic.runtime.closeup.breaks import APPLY_WEIGHTS, LIKELIER, Breaks, edge_of
from gradclinic.runtime.closeup.calls import WATCHED, Calls
from gradclinic.runtime.closeup.policy import Policies
from gradclinic.runtime.closeup.samples import Samples
from gradclinic.runtime.closeup.slices import Slices
from gradclinic.runtime.closeup.trail import Break, Edge, Made, Trail, name_of, op_of, tensors_in
from gradclinic.runtime.closeup.weights import Weights
from gradclinic.runtime.register import Entry, Register
from gradclinic.runtime.scene import Scene

_DATA = torch.Tensor.data.__get__  # type: ignore[attr-defined]
_WRITES = frozenset({"__setitem__", "__iadd__", "__isub__", "__imul__", "__itruediv__", "__ipow__"})
_MOST_LINES = 100_000


class Notebook:
    def __init__(self, scene: Scene) -> None:
        self._recorder = scene.recorder
        self._places = scene.recorder.places
        self._register: Register = scene.register
        self.trail = Trail()
        self.breaks = Breaks(self.trail)
        self.calls = Calls(self.trail, self._untrained)
        self._averages = Averages(self._register.entries)
        self._slices = Slices(self.trail)
        self._samples = Samples()
        self._policies = Policies(scene.actors, self._places, scene.lines)
        self._lines = scene.lines
        self._writes = scene.writes
        self._cuts: dict[tuple[object, ...], tuple[Break | None, Cut]] = {}
        self._paths: dict[Break, Location] = {}
        self._edges: dict[Location, DomainEdge] = {}
        self._weights = Weights(self.trail)

    def note(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        name = "data" if func == _DATA else name_of(func)
        if name == "__get__" or name.startswith("_set"):
            return
        tensors = list(tensors_in((*args, *kwargs.values())))
        results = list(tensors_in([result])) if name != "backward" else []
        if not results and not tensors:
            return
        where = self._places.here()
        if name in ("numpy", "__array__"):
            self.breaks.exported(tensors[0], where)
            return
        if name in WATCHED:
            self.calls.note(name, args, kwargs, result, where)
            if len(tensors) > 1 and name != "ctc_loss":
                self._samples.judged(tensors[0], tensors[1])
        self._samples.note(name, args, result, where)
        if name == "grad":
            self._gradient(args, kwargs, result, where)
            return
        if name == "embedding":
            self.calls.tokens(args[0])
        called = func.__name__
        if called in _WRITES or (called.endswith("_") and not called.endswith("__")):
            self._writes.append((where, called, tuple(tensors[0].shape) if tensors else ()))
            self._averages.note(called, args, kwargs, where, self._recorder.steps)
            self._slices.write(called, args[0] if args else None, where, self._recorder.steps)
        elif name in APPLY_WEIGHTS and args:
            self._slices.read(args[0])
        else:
            self._averages.computed(called, args, result, where, self._recorder.steps)
        cut = self.breaks.at(name, args, tensors, result, where)
        for made in results:
            self._keep(func, name, args, kwargs, tensors, made, where, cut)

    def _keep(
        self,
        func: Any,
        name: str,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        tensors: list[torch.Tensor],
        result: torch.Tensor,
        where: Location,
        cut: Break | None,
    ) -> None:
        if isinstance(result, nn.Parameter):
            return
        parents = [made for tensor in tensors if (made := self.trail.of(tensor)) is not None]
        marks = self.breaks.carried(name, tensors, parents, result)
        if cut is not None:
            marks |= {cut}
        if name in ("as_tensor", "tensor", "from_numpy") and not tensors and result.is_floating_point():
            marks |= self.breaks.imported()
        edge = edge_of(name, args, parents, where)
        if edge is not None:
            marks |= {edge}
        made = Made(
            op_of(func, args, kwargs, result, where),
            tuple(parents),
            result.requires_grad,
            marks,
            self.breaks.lost(name, args, result).union(*(one.lost_terms for one in parents)),
            tuple(tuple(tensor.shape) for tensor in tensors),
            tuple(tensor.requires_grad for tensor in tensors),
        )
        self.trail.keep(result, made)
        if result.grad_fn is not None:
            if len(self._lines) > _MOST_LINES:
                self._lines.clear()
            self._lines[graph.key_of(result.grad_fn)] = where
        if name in ("mean", "sum") and result.numel() == 1 and parents:
            self.calls.difference(parents[0], where, result)
        self._weights.note(name, args, kwargs, where)

    def _untrained(self) -> bool:
        return self._recorder.steps == 0 and not len(self._register.loaded)

    def imported(self, result: torch.Tensor) -> None:
        """`torch.from_numpy` is no function the mode sees."""
        where = self._places.here()
        op = Op("from_numpy", where, shape=tuple(result.shape))
        self.trail.keep(result, Made(op, marks=self.breaks.imported()))

    def _gradient(self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any, where: Location) -> None:
        outputs = kwargs.get("outputs", args[0] if args else ())
        inputs = kwargs.get("inputs", args[1] if len(args) > 1 else ())
        keeps_graph = kwargs.get("create_graph", args[4] if len(args) > 4 else False)
        if keeps_graph or any(isinstance(one, nn.Parameter) for one in tensors_in([inputs])):
            return
        leaves = graph.reached(list(tensors_in([outputs])))
        cut = Break(CutKind.GRAD, where, frozenset(map(id, leaves or ())))
        for one in tensors_in([result]):
            self.trail.keep(one, Made(Op("grad", where, shape=tuple(one.shape)), marks=frozenset({cut})))

    def objective(self, root: torch.Tensor) -> None:
        """A backward begins here."""
        here = self._places.here()
        self.calls.objective(root)
        self._samples.passed()
        self._policies.objective(root.grad_fn)
        made = self.trail.of(root)
        marks = made.marks if made is not None else frozenset()
        broken = [mark for mark in marks if isinstance(mark, Break)]
        if root.grad_fn is None:
            self._lost_whole(root, broken, here)
            return
        for one in made.lost_terms if made is not None else ():
            self._cut(one, CutRole.TERM, here)
        for one in broken:
            if one.kind is CutKind.GRAD:
                self._cut(one, CutRole.TERM, here)
            self._paths.setdefault(one, here)
        for mark in marks:
            if isinstance(mark, Edge):
                self._edges.setdefault(mark.where, DomainEdge(mark.op, mark.where, mark.what))

    def _lost_whole(self, root: torch.Tensor, broken: list[Break], here: Location) -> None:
        broken.sort(key=lambda one: (LIKELIER.index(one.kind), -len(one.leaves)))
        if broken:
            self._cut(
                broken[0], CutRole.WHOLE, here, silenced=root.requires_grad, failed=not root.requires_grad
            )
            return
        cut = Cut(
            CutKind.DETACH,
            CutRole.WHOLE,
            None,
            here,
            silenced=root.requires_grad,
            failed=not root.requires_grad,
        )
        self._cuts.setdefault((here, "whole"), (None, cut))

    def _cut(
        self, one: Break, role: CutRole, here: Location, *, silenced: bool = False, failed: bool = False
    ) -> None:
        self._cuts.setdefault(
            (one.where, one.kind, role),
            (one, Cut(one.kind, role, one.where, here, silenced=silenced, failed=failed)),
        )

    def facts(self) -> Iterator[object]:
        yield from self.calls.found()
        yield from self._edges.values()
        yield from self._weights.found()
        yield from self._averages.found()
        yield from self._slices.found()
        yield from self._samples.found()
        yield from self._policies.found()
        yield from self._told_cuts()

    def _told_cuts(self) -> Iterator[Cut]:
        entries = self._register.entries
        if not any(_trained(entry) for entry in entries.values()):
            return  # Nothing requires a gradient, so nothing was cut.
        for one, cut in self._cuts.values():
            known = [entries[leaf] for leaf in (one.leaves if one else ()) if leaf in entries]
            names = tuple(entry.name for entry in known if _trained(entry))
            told = Cut(cut.kind, cut.role, cut.where, cut.backward, names, cut.silenced, cut.failed)
            for entry in known:
                entry.cut = entry.cut or told
            yield told
        yield from self._told_paths()

    def _told_paths(self) -> Iterator[Cut]:
        """Of several cuts before one parameter, that of the loss its own optimizer steps after."""
        own_losses = self._recorder.losses_stepped_on()
        chosen: dict[int, tuple[Break, Location]] = {}
        for one, here in self._paths.items():
            for leaf in one.leaves & self._register.entries.keys():
                entry = self._register.entries[leaf]
                if not (entry.trainable and entry.holders) or entry.reached or _known_otherwise(entry):
                    continue
                own = {own_losses.get(holder) for holder in entry.holders}
                if leaf not in chosen or (here in own and chosen[leaf][1] not in own):
                    chosen[leaf] = (one, here)
        lost: dict[tuple[CutKind, Location, Location], list[Entry]] = {}
        for leaf, (one, here) in chosen.items():
            lost.setdefault((one.kind, one.where, here), []).append(self._register.entries[leaf])
        for (kind, where, here), behind in lost.items():
            told = Cut(kind, CutRole.PATH, where, here, tuple(entry.name for entry in behind))
            for entry in behind:
                entry.cut = told
            yield told


def _trained(entry: Entry) -> bool:
    """A critic may be frozen at the moment, while the other side of its game takes a step."""
    return bool(entry.holders) and (entry.trainable or entry.reached)


def _known_otherwise(entry: Entry) -> bool:
    """By a cut of another role or kind; one found here before, while the run went on, is told again."""
    cut = entry.cut
    return cut is not None and (cut.role is not CutRole.PATH or cut.kind is CutKind.CHECKPOINT)
